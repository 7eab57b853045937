"""Where protocols are attached to doors."""
