"""How Alembic reaches the database: one connection, one transaction for the whole upgrade."""

from pathlib import Path

from alembic import context

from store.database import engine


def run() -> None:
    path: Path = context.config.attributes["path"]
    made = engine(path)
    try:
        with made.connect() as connection:
            context.configure(connection=connection, transaction_per_migration=False, transactional_ddl=True)
            with context.begin_transaction():
                context.run_migrations()
    finally:
        made.dispose()


run()
