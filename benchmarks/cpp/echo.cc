// A C++ callback echo of riff messages without protocol logic: as fast as gRPC goes here, and what ours is measured
// against. Each message is flushed when it is written.
//
// Usage: echo [echo|zip|headers]; prints grpc=HOST:PORT and serves until it is killed. "zip" answers each second frame
// with the payloads of both; headers are always kept.
#include <grpcpp/grpcpp.h>

#include <iostream>
#include <memory>
#include <string>

#include "riff-rpc.grpc.pb.h"

namespace {

class Echo final : public grpc::ServerBidiReactor<streaming::InputSignal, streaming::OutputSignal> {
 public:
  explicit Echo(bool zips) : zips_(zips) { StartRead(&input_); }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    if (!input_.has_data()) {  // the StartFrame
      StartRead(&input_);
      return;
    }
    if (zips_ && !paired_) {
      paired_ = true;
      left_.swap(*input_.mutable_data()->mutable_payload());
      StartRead(&input_);
      return;
    }
    Answer();
  }

  void OnWriteDone(bool ok) override {
    if (ok) {
      StartRead(&input_);
    } else {
      Finish(grpc::Status(grpc::StatusCode::UNKNOWN, "the peer went"));
    }
  }

  void OnDone() override { delete this; }

 private:
  void Answer() {
    streaming::InputFrame* in = input_.mutable_data();
    streaming::OutputFrame* out = output_.mutable_data();
    if (paired_) {
      out->set_payload(left_ + in->payload());
      paired_ = false;
    } else {
      out->mutable_payload()->swap(*in->mutable_payload());
    }
    out->mutable_contenttype()->swap(*in->mutable_contenttype());
    out->mutable_headers()->swap(*in->mutable_headers());
    StartWrite(&output_);
  }

  const bool zips_;
  bool paired_ = false;
  std::string left_;
  streaming::InputSignal input_;
  streaming::OutputSignal output_;
};

class Service final : public streaming::Riff::CallbackService {
 public:
  explicit Service(bool zips) : zips_(zips) {}

  grpc::ServerBidiReactor<streaming::InputSignal, streaming::OutputSignal>* Invoke(
      grpc::CallbackServerContext*) override {
    return new Echo(zips_);
  }

 private:
  const bool zips_;
};

}  // namespace

int main(int argc, char** argv) {
  Service service(argc > 1 && std::string(argv[1]) == "zip");
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server(builder.BuildAndStart());
  if (server == nullptr) {
    return 1;
  }
  std::cout << "ready: grpc=127.0.0.1:" << port << std::endl;
  server->Wait();
}
