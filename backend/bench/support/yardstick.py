"""The yardstick of ingest: bare FastAPI and psycopg that store the same bytes, and do nothing else with them.

One insert and one durable commit per request, over a pool of 8 connections, served by the same uvicorn with httptools.
``python -m bench.support.yardstick PORT`` with the database in YARDSTICK_DATABASE_URL.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request, Response
from psycopg_pool import AsyncConnectionPool

pool = AsyncConnectionPool(os.environ["YARDSTICK_DATABASE_URL"], min_size=8, max_size=8, open=False)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Open the pool and make the table."""
    await pool.open()
    async with pool.connection() as connection:
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS yardstick (id bigserial PRIMARY KEY, stored_at timestamptz DEFAULT now(),"
            " document bytea)"
        )
    yield
    await pool.close()


app = FastAPI(lifespan=lifespan)


@app.post("/api/v1/reports")
async def store(request: Request) -> Response:
    """Store the body."""
    body = await request.body()
    async with pool.connection() as connection:
        await connection.execute("INSERT INTO yardstick (document) VALUES (%b)", [body])
    return Response(b'{"created":true}', status_code=201, media_type="application/json")


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether it answers."""
    return {"status": "ok"}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), http="httptools", access_log=False, log_level="warning")
