CREATE TABLE owners (id TEXT PRIMARY KEY, until_ns INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE spaces (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    about BLOB NOT NULL,
    ttl_s REAL NOT NULL,
    created_ns INTEGER NOT NULL,
    used_ns INTEGER NOT NULL,
    expires_ns INTEGER NOT NULL,
    items INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL
);
CREATE INDEX spaces_by_end ON spaces (expires_ns);

CREATE TABLE items (
    space INTEGER NOT NULL,
    name TEXT NOT NULL,
    created_ns INTEGER NOT NULL,
    updated_ns INTEGER NOT NULL,
    about BLOB NOT NULL,
    value BLOB NOT NULL,
    UNIQUE (space, name)
);

CREATE TABLE gone (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, reason TEXT NOT NULL);
CREATE TABLE holds (space INTEGER NOT NULL, owner TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (space, owner))
    WITHOUT ROWID;
CREATE TABLE ears (space INTEGER NOT NULL, owner TEXT NOT NULL, items INTEGER NOT NULL, PRIMARY KEY (space, owner))
    WITHOUT ROWID;
CREATE INDEX holds_by_owner ON holds (owner);
CREATE INDEX ears_by_owner ON ears (owner);

CREATE TABLE changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    space INTEGER NOT NULL,
    name TEXT,
    value BLOB,
    updated_ns INTEGER,
    is_new INTEGER,
    reason TEXT
);

CREATE TABLE totals (spaces INTEGER NOT NULL, size INTEGER NOT NULL);
INSERT INTO totals VALUES (0, 0)
