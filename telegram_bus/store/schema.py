"""The tables of both databases; a new version is a new entry at the end, an old entry never changes."""

from __future__ import annotations

from typing import Final

from telegram_bus.store.database import Schema

__all__ = ["INBOX", "JOURNAL"]

JOURNAL: Final = Schema(
    application_id=0x74626A31,  # "tbj1"
    steps=(
        """
        CREATE TABLE term (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            store_id TEXT NOT NULL,
            epoch INTEGER NOT NULL,
            holder TEXT NOT NULL,
            poll_offset INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE updates (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            update_id INTEGER NOT NULL,
            kind TEXT NOT NULL,
            body BLOB NOT NULL,
            owner_key TEXT,
            chat_id INTEGER,
            thread_id INTEGER,
            admitted_ms INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            outcome TEXT,
            settled_ms INTEGER
        ) STRICT;
        CREATE INDEX updates_waiting ON updates (owner_key, seq) WHERE outcome IS NULL;
        CREATE INDEX updates_settled ON updates (settled_ms) WHERE settled_ms IS NOT NULL;
        CREATE TABLE seen (update_id INTEGER PRIMARY KEY, seen_ms INTEGER NOT NULL) STRICT;
        CREATE INDEX seen_age ON seen (seen_ms);
        CREATE TABLE bindings (
            key TEXT PRIMARY KEY,
            chat_id INTEGER NOT NULL,
            thread_id INTEGER,
            name TEXT NOT NULL,
            since_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX bindings_thread ON bindings (chat_id, thread_id) WHERE thread_id IS NOT NULL;
        CREATE TABLE messages (
            chat_id INTEGER NOT NULL,
            message_id INTEGER NOT NULL,
            thread_id INTEGER,
            key TEXT NOT NULL,
            sent_ms INTEGER NOT NULL,
            PRIMARY KEY (chat_id, message_id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX messages_age ON messages (sent_ms);
        CREATE TABLE calls (
            key TEXT NOT NULL,
            request_id TEXT NOT NULL,
            digest TEXT NOT NULL,
            epoch INTEGER NOT NULL,
            claimed_ms INTEGER NOT NULL,
            answer BLOB,
            settled_ms INTEGER,
            PRIMARY KEY (key, request_id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX calls_age ON calls (claimed_ms);
        """,
        """
        ALTER TABLE updates ADD COLUMN message_id INTEGER;
        ALTER TABLE updates ADD COLUMN reason TEXT;
        CREATE INDEX updates_message ON updates (chat_id, message_id) WHERE outcome IS NULL AND message_id IS NOT NULL;
        CREATE TABLE absences (
            key TEXT PRIMARY KEY,
            since_ms INTEGER NOT NULL,
            told INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID;
        """,
        """
        ALTER TABLE calls RENAME TO calls_before;
        DROP INDEX calls_age;
        CREATE TABLE calls (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            key TEXT NOT NULL,
            request_id TEXT NOT NULL,
            digest TEXT NOT NULL,
            method TEXT NOT NULL DEFAULT '',
            body BLOB,
            state TEXT NOT NULL CHECK (state IN ('accepted', 'claimed', 'unknown', 'settled')),
            epoch INTEGER NOT NULL,
            since_ms INTEGER NOT NULL,
            tries INTEGER NOT NULL DEFAULT 0,
            told INTEGER NOT NULL DEFAULT 0,
            answer BLOB,
            settled_ms INTEGER,
            UNIQUE (key, request_id)
        ) STRICT;
        INSERT INTO calls (key, request_id, digest, state, epoch, since_ms, told, answer, settled_ms)
            SELECT key, request_id, digest, iif(answer IS NULL, 'unknown', 'settled'), epoch, claimed_ms, 1, answer,
                settled_ms FROM calls_before;
        DROP TABLE calls_before;
        CREATE INDEX calls_age ON calls (since_ms);
        CREATE INDEX calls_open ON calls (state, seq) WHERE state != 'settled';
        CREATE TABLE parked (
            chat_id INTEGER PRIMARY KEY,
            why TEXT NOT NULL,
            since_ms INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE choosers (
            chat_id INTEGER NOT NULL,
            place INTEGER NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('open', 'later', 'done')),
            message_id INTEGER,
            closed_id INTEGER NOT NULL DEFAULT 0,
            epoch INTEGER NOT NULL,
            since_ms INTEGER NOT NULL,
            PRIMARY KEY (chat_id, place)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE held (seq INTEGER PRIMARY KEY, chat_id INTEGER NOT NULL, place INTEGER NOT NULL) STRICT;
        CREATE INDEX held_places ON held (chat_id, place);
        CREATE TABLE choices (
            chat_id INTEGER NOT NULL,
            user_id INTEGER NOT NULL,
            key TEXT NOT NULL,
            since_ms INTEGER NOT NULL,
            PRIMARY KEY (chat_id, user_id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE mutes (key TEXT PRIMARY KEY, until_ms INTEGER) STRICT, WITHOUT ROWID;
        CREATE TABLE told (what TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE files (
            file_id TEXT NOT NULL,
            key TEXT NOT NULL,
            since_ms INTEGER NOT NULL,
            PRIMARY KEY (file_id, key)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX files_age ON files (since_ms);
        CREATE TABLE given (
            chat_id INTEGER NOT NULL,
            message_id INTEGER NOT NULL,
            key TEXT NOT NULL,
            since_ms INTEGER NOT NULL,
            PRIMARY KEY (chat_id, message_id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX given_age ON given (since_ms);
        CREATE TABLE offers (
            key TEXT PRIMARY KEY,
            commands BLOB NOT NULL,
            since_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE menus (chat_id INTEGER PRIMARY KEY, digest TEXT NOT NULL, set_ms INTEGER NOT NULL) STRICT;
        ALTER TABLE bindings ADD COLUMN holder TEXT;
        ALTER TABLE bindings ADD COLUMN by_person INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE bindings ADD COLUMN closed INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE bindings ADD COLUMN gone_ms INTEGER;
        ALTER TABLE bindings ADD COLUMN remade_ms INTEGER;
        CREATE TABLE creations (
            key TEXT PRIMARY KEY,
            chat_id INTEGER NOT NULL,
            name TEXT NOT NULL,
            begun_ms INTEGER NOT NULL,
            holder TEXT
        ) STRICT, WITHOUT ROWID;
        INSERT INTO creations SELECT key, chat_id, name, since_ms, NULL FROM bindings WHERE thread_id IS NULL;
        DELETE FROM bindings WHERE thread_id IS NULL;
        CREATE TABLE clean_ups (
            chat_id INTEGER NOT NULL,
            thread_id INTEGER NOT NULL,
            key TEXT NOT NULL,
            how TEXT NOT NULL CHECK (how IN ('close', 'delete')),
            why TEXT NOT NULL,
            since_ms INTEGER NOT NULL,
            PRIMARY KEY (chat_id, thread_id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE keyboards (
            id TEXT PRIMARY KEY,
            key TEXT NOT NULL,
            content BLOB NOT NULL,
            holder TEXT,
            question INTEGER NOT NULL,
            made_ms INTEGER NOT NULL,
            chat_id INTEGER,
            message_id INTEGER,
            answer BLOB,
            shown INTEGER NOT NULL DEFAULT 0,
            taken INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX keyboards_age ON keyboards (made_ms);
        CREATE INDEX keyboards_open ON keyboards (id) WHERE question AND (NOT shown OR NOT taken);
        CREATE TABLE spent (
            epoch INTEGER NOT NULL,
            number INTEGER NOT NULL,
            chat_id INTEGER,
            weight INTEGER NOT NULL,
            started_ms INTEGER NOT NULL,
            ended_ms INTEGER,
            PRIMARY KEY (epoch, number)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE holds (
            chat_id INTEGER PRIMARY KEY,
            until_ms INTEGER NOT NULL,
            most INTEGER NOT NULL,
            stretch REAL NOT NULL
        ) STRICT;
        """,
    ),
)

INBOX: Final = Schema(
    application_id=0x74626931,  # "tbi1"
    steps=(
        """
        CREATE TABLE deliveries (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            delivery_id TEXT NOT NULL UNIQUE,
            kind TEXT NOT NULL,
            source_update_id INTEGER NOT NULL,
            body BLOB,
            received_ms INTEGER NOT NULL,
            done_ms INTEGER
        ) STRICT;
        CREATE INDEX deliveries_waiting ON deliveries (seq) WHERE done_ms IS NULL;
        CREATE INDEX deliveries_done ON deliveries (done_ms) WHERE done_ms IS NOT NULL;
        """,
        """
        CREATE TABLE plans (
            call_id TEXT PRIMARY KEY,
            body BLOB NOT NULL,
            kept_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        ALTER TABLE deliveries ADD COLUMN item TEXT;
        ALTER TABLE deliveries ADD COLUMN follows TEXT;
        ALTER TABLE deliveries ADD COLUMN album TEXT;
        CREATE TABLE handing (
            item TEXT PRIMARY KEY,
            recipient TEXT NOT NULL,
            token INTEGER NOT NULL,
            note TEXT,
            since_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX deliveries_item ON deliveries (item) WHERE item IS NOT NULL;
        CREATE INDEX deliveries_album ON deliveries (seq) WHERE album IS NOT NULL;
        """,
    ),
)
