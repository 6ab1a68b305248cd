--
-- PostgreSQL database dump
--

\restrict 6tTyc3ENvz9PtMgoo4lt8rXddVNAff0URq7FZiThXwRTfJ9ZTwfsbz0w416NZm3

-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: alembic_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);


--
-- Name: browser_sessions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.browser_sessions (
    id uuid NOT NULL,
    secret_sha256 bytea NOT NULL,
    token_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_browser_sessions_secret_sha256 CHECK ((octet_length(secret_sha256) = 32))
);


--
-- Name: curves; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.curves (
    node_id uuid NOT NULL,
    run_id uuid NOT NULL,
    ordinal bigint NOT NULL,
    section text NOT NULL,
    name text NOT NULL,
    x_name text NOT NULL,
    backing text NOT NULL,
    backing_kind text,
    page_bytes bigint,
    layout text,
    granted_fraction double precision,
    status text NOT NULL,
    reason text,
    x bigint[] NOT NULL,
    ns_min double precision[] NOT NULL,
    ns_p10 double precision[] NOT NULL,
    ns_p50 double precision[] NOT NULL,
    ns_p90 double precision[] NOT NULL,
    ns_mad double precision[] NOT NULL,
    batches bigint[] NOT NULL,
    dropped bigint[] NOT NULL,
    CONSTRAINT ck_curves_lengths CHECK (((cardinality(x) = cardinality(ns_p50)) AND (cardinality(x) = cardinality(ns_min)) AND (cardinality(x) = cardinality(ns_p10)) AND (cardinality(x) = cardinality(ns_p90)) AND (cardinality(x) = cardinality(ns_mad)) AND (cardinality(x) = cardinality(batches)) AND (cardinality(x) = cardinality(dropped))))
);


--
-- Name: nodes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.nodes (
    id uuid NOT NULL,
    machine_id text NOT NULL,
    name text NOT NULL,
    synthetic boolean NOT NULL,
    architecture text NOT NULL,
    cpu_brand text,
    virtualised boolean,
    mem_total_bytes bigint NOT NULL,
    numa_node_count bigint NOT NULL,
    agent_version text NOT NULL,
    first_report_at timestamp with time zone NOT NULL,
    last_report_at timestamp with time zone NOT NULL,
    sampled_at timestamp with time zone NOT NULL,
    inventory jsonb NOT NULL,
    sample jsonb NOT NULL,
    processes jsonb NOT NULL,
    collectors jsonb NOT NULL,
    latest_run_id uuid,
    effective_granule_bytes bigint,
    CONSTRAINT ck_nodes_mem_total_bytes CHECK ((mem_total_bytes > 0)),
    CONSTRAINT ck_nodes_numa_node_count CHECK ((numa_node_count > 0))
);


--
-- Name: plans; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.plans (
    id uuid NOT NULL,
    scenario_id uuid NOT NULL,
    scenario_version bigint NOT NULL,
    node_id uuid,
    created_at timestamp with time zone NOT NULL,
    headline text NOT NULL,
    plan json NOT NULL,
    artifacts json NOT NULL
);


--
-- Name: report_documents; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.report_documents (
    node_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    report_id uuid NOT NULL,
    document bytea NOT NULL
)
PARTITION BY RANGE (received_at);


--
-- Name: report_documents_20261121; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.report_documents_20261121 (
    node_id uuid CONSTRAINT report_documents_node_id_not_null NOT NULL,
    received_at timestamp with time zone CONSTRAINT report_documents_received_at_not_null NOT NULL,
    report_id uuid CONSTRAINT report_documents_report_id_not_null NOT NULL,
    document bytea CONSTRAINT report_documents_document_not_null NOT NULL
);


--
-- Name: report_documents_20261122; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.report_documents_20261122 (
    node_id uuid CONSTRAINT report_documents_node_id_not_null NOT NULL,
    received_at timestamp with time zone CONSTRAINT report_documents_received_at_not_null NOT NULL,
    report_id uuid CONSTRAINT report_documents_report_id_not_null NOT NULL,
    document bytea CONSTRAINT report_documents_document_not_null NOT NULL
);


--
-- Name: report_documents_20261123; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.report_documents_20261123 (
    node_id uuid CONSTRAINT report_documents_node_id_not_null NOT NULL,
    received_at timestamp with time zone CONSTRAINT report_documents_received_at_not_null NOT NULL,
    report_id uuid CONSTRAINT report_documents_report_id_not_null NOT NULL,
    document bytea CONSTRAINT report_documents_document_not_null NOT NULL
);


--
-- Name: report_documents_20261124; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.report_documents_20261124 (
    node_id uuid CONSTRAINT report_documents_node_id_not_null NOT NULL,
    received_at timestamp with time zone CONSTRAINT report_documents_received_at_not_null NOT NULL,
    report_id uuid CONSTRAINT report_documents_report_id_not_null NOT NULL,
    document bytea CONSTRAINT report_documents_document_not_null NOT NULL
);


--
-- Name: report_documents_20261125; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.report_documents_20261125 (
    node_id uuid CONSTRAINT report_documents_node_id_not_null NOT NULL,
    received_at timestamp with time zone CONSTRAINT report_documents_received_at_not_null NOT NULL,
    report_id uuid CONSTRAINT report_documents_report_id_not_null NOT NULL,
    document bytea CONSTRAINT report_documents_document_not_null NOT NULL
);


--
-- Name: report_documents_default; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.report_documents_default (
    node_id uuid CONSTRAINT report_documents_node_id_not_null NOT NULL,
    received_at timestamp with time zone CONSTRAINT report_documents_received_at_not_null NOT NULL,
    report_id uuid CONSTRAINT report_documents_report_id_not_null NOT NULL,
    document bytea CONSTRAINT report_documents_document_not_null NOT NULL
);


--
-- Name: reports; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.reports (
    node_id uuid NOT NULL,
    report_id uuid NOT NULL,
    received_at timestamp with time zone NOT NULL,
    content_sha256 bytea NOT NULL,
    run_id uuid,
    CONSTRAINT ck_reports_content_sha256 CHECK ((octet_length(content_sha256) = 32))
);


--
-- Name: runs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.runs (
    node_id uuid NOT NULL,
    id uuid NOT NULL,
    started_at timestamp with time zone NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    command text NOT NULL,
    profile text,
    tool_version text NOT NULL,
    duration_seconds double precision,
    sections jsonb NOT NULL,
    document json NOT NULL
);


--
-- Name: sample_hours; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sample_hours (
    node_id uuid NOT NULL,
    hour_at timestamp with time zone NOT NULL,
    samples bigint NOT NULL,
    mem_total_bytes_max bigint NOT NULL,
    mem_available_bytes_min bigint,
    mem_available_bytes_mean bigint,
    page_tables_bytes_max bigint,
    anon_huge_pages_bytes_max bigint,
    hugetlb_bytes_max bigint,
    CONSTRAINT ck_sample_hours_samples CHECK ((samples > 0))
);


--
-- Name: samples; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.samples (
    node_id uuid NOT NULL,
    taken_at timestamp with time zone NOT NULL,
    report_id uuid NOT NULL,
    mem_total_bytes bigint NOT NULL,
    mem_available_bytes bigint,
    page_tables_bytes bigint,
    anon_huge_pages_bytes bigint,
    hugetlb_bytes bigint,
    memory jsonb NOT NULL,
    pools jsonb NOT NULL,
    CONSTRAINT ck_samples_mem_total_bytes CHECK ((mem_total_bytes > 0))
)
PARTITION BY RANGE (taken_at);


--
-- Name: samples_20261121; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.samples_20261121 (
    node_id uuid CONSTRAINT samples_node_id_not_null NOT NULL,
    taken_at timestamp with time zone CONSTRAINT samples_taken_at_not_null NOT NULL,
    report_id uuid CONSTRAINT samples_report_id_not_null NOT NULL,
    mem_total_bytes bigint CONSTRAINT samples_mem_total_bytes_not_null NOT NULL,
    mem_available_bytes bigint,
    page_tables_bytes bigint,
    anon_huge_pages_bytes bigint,
    hugetlb_bytes bigint,
    memory jsonb CONSTRAINT samples_memory_not_null NOT NULL,
    pools jsonb CONSTRAINT samples_pools_not_null NOT NULL,
    CONSTRAINT ck_samples_mem_total_bytes CHECK ((mem_total_bytes > 0))
);


--
-- Name: samples_20261122; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.samples_20261122 (
    node_id uuid CONSTRAINT samples_node_id_not_null NOT NULL,
    taken_at timestamp with time zone CONSTRAINT samples_taken_at_not_null NOT NULL,
    report_id uuid CONSTRAINT samples_report_id_not_null NOT NULL,
    mem_total_bytes bigint CONSTRAINT samples_mem_total_bytes_not_null NOT NULL,
    mem_available_bytes bigint,
    page_tables_bytes bigint,
    anon_huge_pages_bytes bigint,
    hugetlb_bytes bigint,
    memory jsonb CONSTRAINT samples_memory_not_null NOT NULL,
    pools jsonb CONSTRAINT samples_pools_not_null NOT NULL,
    CONSTRAINT ck_samples_mem_total_bytes CHECK ((mem_total_bytes > 0))
);


--
-- Name: samples_20261123; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.samples_20261123 (
    node_id uuid CONSTRAINT samples_node_id_not_null NOT NULL,
    taken_at timestamp with time zone CONSTRAINT samples_taken_at_not_null NOT NULL,
    report_id uuid CONSTRAINT samples_report_id_not_null NOT NULL,
    mem_total_bytes bigint CONSTRAINT samples_mem_total_bytes_not_null NOT NULL,
    mem_available_bytes bigint,
    page_tables_bytes bigint,
    anon_huge_pages_bytes bigint,
    hugetlb_bytes bigint,
    memory jsonb CONSTRAINT samples_memory_not_null NOT NULL,
    pools jsonb CONSTRAINT samples_pools_not_null NOT NULL,
    CONSTRAINT ck_samples_mem_total_bytes CHECK ((mem_total_bytes > 0))
);


--
-- Name: samples_20261124; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.samples_20261124 (
    node_id uuid CONSTRAINT samples_node_id_not_null NOT NULL,
    taken_at timestamp with time zone CONSTRAINT samples_taken_at_not_null NOT NULL,
    report_id uuid CONSTRAINT samples_report_id_not_null NOT NULL,
    mem_total_bytes bigint CONSTRAINT samples_mem_total_bytes_not_null NOT NULL,
    mem_available_bytes bigint,
    page_tables_bytes bigint,
    anon_huge_pages_bytes bigint,
    hugetlb_bytes bigint,
    memory jsonb CONSTRAINT samples_memory_not_null NOT NULL,
    pools jsonb CONSTRAINT samples_pools_not_null NOT NULL,
    CONSTRAINT ck_samples_mem_total_bytes CHECK ((mem_total_bytes > 0))
);


--
-- Name: samples_20261125; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.samples_20261125 (
    node_id uuid CONSTRAINT samples_node_id_not_null NOT NULL,
    taken_at timestamp with time zone CONSTRAINT samples_taken_at_not_null NOT NULL,
    report_id uuid CONSTRAINT samples_report_id_not_null NOT NULL,
    mem_total_bytes bigint CONSTRAINT samples_mem_total_bytes_not_null NOT NULL,
    mem_available_bytes bigint,
    page_tables_bytes bigint,
    anon_huge_pages_bytes bigint,
    hugetlb_bytes bigint,
    memory jsonb CONSTRAINT samples_memory_not_null NOT NULL,
    pools jsonb CONSTRAINT samples_pools_not_null NOT NULL,
    CONSTRAINT ck_samples_mem_total_bytes CHECK ((mem_total_bytes > 0))
);


--
-- Name: samples_default; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.samples_default (
    node_id uuid CONSTRAINT samples_node_id_not_null NOT NULL,
    taken_at timestamp with time zone CONSTRAINT samples_taken_at_not_null NOT NULL,
    report_id uuid CONSTRAINT samples_report_id_not_null NOT NULL,
    mem_total_bytes bigint CONSTRAINT samples_mem_total_bytes_not_null NOT NULL,
    mem_available_bytes bigint,
    page_tables_bytes bigint,
    anon_huge_pages_bytes bigint,
    hugetlb_bytes bigint,
    memory jsonb CONSTRAINT samples_memory_not_null NOT NULL,
    pools jsonb CONSTRAINT samples_pools_not_null NOT NULL,
    CONSTRAINT ck_samples_mem_total_bytes CHECK ((mem_total_bytes > 0))
);


--
-- Name: scenarios; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.scenarios (
    id uuid NOT NULL,
    name text NOT NULL,
    node_id uuid,
    version bigint NOT NULL,
    document json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_scenarios_version CHECK ((version > 0))
);


--
-- Name: tokens; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tokens (
    id uuid NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    secret_sha256 bytea NOT NULL,
    machine_id text,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    last_used_at timestamp with time zone,
    CONSTRAINT ck_tokens_machine_id CHECK (((machine_id IS NULL) OR (role = 'agent'::text))),
    CONSTRAINT ck_tokens_role CHECK ((role = ANY (ARRAY['agent'::text, 'enrolment'::text, 'viewer'::text, 'planner'::text, 'admin'::text]))),
    CONSTRAINT ck_tokens_secret_sha256 CHECK ((octet_length(secret_sha256) = 32))
);


--
-- Name: report_documents_20261121; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents ATTACH PARTITION public.report_documents_20261121 FOR VALUES FROM ('2026-11-21 00:00:00+00') TO ('2026-11-22 00:00:00+00');


--
-- Name: report_documents_20261122; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents ATTACH PARTITION public.report_documents_20261122 FOR VALUES FROM ('2026-11-22 00:00:00+00') TO ('2026-11-23 00:00:00+00');


--
-- Name: report_documents_20261123; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents ATTACH PARTITION public.report_documents_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');


--
-- Name: report_documents_20261124; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents ATTACH PARTITION public.report_documents_20261124 FOR VALUES FROM ('2026-11-24 00:00:00+00') TO ('2026-11-25 00:00:00+00');


--
-- Name: report_documents_20261125; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents ATTACH PARTITION public.report_documents_20261125 FOR VALUES FROM ('2026-11-25 00:00:00+00') TO ('2026-11-26 00:00:00+00');


--
-- Name: report_documents_default; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents ATTACH PARTITION public.report_documents_default DEFAULT;


--
-- Name: samples_20261121; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples ATTACH PARTITION public.samples_20261121 FOR VALUES FROM ('2026-11-21 00:00:00+00') TO ('2026-11-22 00:00:00+00');


--
-- Name: samples_20261122; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples ATTACH PARTITION public.samples_20261122 FOR VALUES FROM ('2026-11-22 00:00:00+00') TO ('2026-11-23 00:00:00+00');


--
-- Name: samples_20261123; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples ATTACH PARTITION public.samples_20261123 FOR VALUES FROM ('2026-11-23 00:00:00+00') TO ('2026-11-24 00:00:00+00');


--
-- Name: samples_20261124; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples ATTACH PARTITION public.samples_20261124 FOR VALUES FROM ('2026-11-24 00:00:00+00') TO ('2026-11-25 00:00:00+00');


--
-- Name: samples_20261125; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples ATTACH PARTITION public.samples_20261125 FOR VALUES FROM ('2026-11-25 00:00:00+00') TO ('2026-11-26 00:00:00+00');


--
-- Name: samples_default; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples ATTACH PARTITION public.samples_default DEFAULT;


--
-- Data for Name: alembic_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.alembic_version VALUES
	('0001');


--
-- Data for Name: browser_sessions; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: curves; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.curves VALUES
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '40a1bafb-084c-40c0-a2aa-f64a7260d973', 0, 'geometry', 'geometry aliased 4K', 'pages', '2M', 'hugetlb', 2097152, 'aliased', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '40a1bafb-084c-40c0-a2aa-f64a7260d973', 1, 'latency', 'latency line_per_page 4K', 'footprint_bytes', '4K', 'base', 4096, 'line_per_page', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '40a1bafb-084c-40c0-a2aa-f64a7260d973', 2, 'latency', 'latency line_per_page 2M', 'footprint_bytes', '2M', 'hugetlb', 2097152, 'line_per_page', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', 'd5190ab6-2716-4756-8029-31db6f8a5133', 0, 'geometry', 'geometry aliased 4K', 'pages', '2M', 'hugetlb', 2097152, 'aliased', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', 'd5190ab6-2716-4756-8029-31db6f8a5133', 1, 'latency', 'latency line_per_page 4K', 'footprint_bytes', '4K', 'base', 4096, 'line_per_page', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', 'd5190ab6-2716-4756-8029-31db6f8a5133', 2, 'latency', 'latency line_per_page 2M', 'footprint_bytes', '2M', 'hugetlb', 2097152, 'line_per_page', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', 'ab120070-4ab9-4f93-aa4b-2ceb4d7d1e5d', 0, 'geometry', 'geometry aliased 4K', 'pages', '2M', 'hugetlb', 2097152, 'aliased', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', 'ab120070-4ab9-4f93-aa4b-2ceb4d7d1e5d', 1, 'latency', 'latency line_per_page 4K', 'footprint_bytes', '4K', 'base', 4096, 'line_per_page', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', 'ab120070-4ab9-4f93-aa4b-2ceb4d7d1e5d', 2, 'latency', 'latency line_per_page 2M', 'footprint_bytes', '2M', 'hugetlb', 2097152, 'line_per_page', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '7d39a36e-4bba-471c-b6d4-f6c42f41119e', 0, 'geometry', 'geometry aliased 4K', 'pages', '2M', 'hugetlb', 2097152, 'aliased', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '7d39a36e-4bba-471c-b6d4-f6c42f41119e', 1, 'latency', 'latency line_per_page 4K', 'footprint_bytes', '4K', 'base', 4096, 'line_per_page', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '7d39a36e-4bba-471c-b6d4-f6c42f41119e', 2, 'latency', 'latency line_per_page 2M', 'footprint_bytes', '2M', 'hugetlb', 2097152, 'line_per_page', 1, 'ok', NULL, '{65536,262144,1048576}', '{1.5,2.5,3.5}', '{1.6,2.6,3.6}', '{1.7,2.7,3.7}', '{1.9,2.9,3.9}', '{NULL,NULL,NULL}', '{25,25,25}', '{1,1,1}');


--
-- Data for Name: nodes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.nodes VALUES
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '00000000000000000000000000000001', 'old-0', true, 'x86_64', 'AMD EPYC', true, 68719476736, 1, '0.1.0', '2026-11-22 15:50:56.043562+00', '2026-11-22 15:50:56.213976+00', '2026-11-20 10:02:00+00', '{"cpu": {"brand": "AMD EPYC", "model": 2, "family": 26, "online": 16, "vendor": "AuthenticAMD", "stepping": 1}, "thp": {"defrag": "madvise", "enabled": "madvise", "shmem_enabled": "never"}, "hypervisor": "KVM", "numa_nodes": [{"id": 0, "cpus": "0-15", "mem_total_bytes": 68719476736}], "hvo_enabled": false, "virtualised": true, "architecture": "x86_64", "cgroup_version": 2, "kernel_release": "6.12.0", "base_page_bytes": 4096, "kernel_command_line": "ro quiet", "huge_page_sizes_bytes": [2097152, 1073741824], "default_huge_page_bytes": 2097152}', '{"numa": [{"id": 0, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "anon_huge_pages_bytes": null}], "pools": [{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}], "memory": {"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}, "taken_at": "2026-11-20T10:02:00Z", "global_pools": [{"page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": 0, "surplus_hugepages": 0, "nr_overcommit_hugepages": 0}, {"page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": 0, "surplus_hugepages": 0, "nr_overcommit_hugepages": null}]}', '[{"pid": 10, "name": "small", "pss_bytes": null, "rss_bytes": 1048576, "vm_pte_bytes": 4096, "anon_huge_bytes": null, "start_time_ticks": 5, "shared_hugetlb_bytes": null, "private_hugetlb_bytes": null, "shmem_pmd_mapped_bytes": null}, {"pid": 11, "name": "postgres", "pss_bytes": null, "rss_bytes": 1073741824, "vm_pte_bytes": 8192, "anon_huge_bytes": null, "start_time_ticks": 6, "shared_hugetlb_bytes": null, "private_hugetlb_bytes": null, "shmem_pmd_mapped_bytes": null}]', '[{"name": "meminfo", "reason": null, "status": "ok", "duration_seconds": 0.001}]', '40a1bafb-084c-40c0-a2aa-f64a7260d973', 4096),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', '00000000000000000000000000000002', 'old-1', true, 'x86_64', 'AMD EPYC', true, 68719476736, 1, '0.1.0', '2026-11-22 15:50:59.137721+00', '2026-11-22 15:50:59.224508+00', '2026-11-20 10:02:00+00', '{"cpu": {"brand": "AMD EPYC", "model": 2, "family": 26, "online": 16, "vendor": "AuthenticAMD", "stepping": 1}, "thp": {"defrag": "madvise", "enabled": "madvise", "shmem_enabled": "never"}, "hypervisor": "KVM", "numa_nodes": [{"id": 0, "cpus": "0-15", "mem_total_bytes": 68719476736}], "hvo_enabled": false, "virtualised": true, "architecture": "x86_64", "cgroup_version": 2, "kernel_release": "6.12.0", "base_page_bytes": 4096, "kernel_command_line": "ro quiet", "huge_page_sizes_bytes": [2097152, 1073741824], "default_huge_page_bytes": 2097152}', '{"numa": [{"id": 0, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "anon_huge_pages_bytes": null}], "pools": [{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}], "memory": {"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}, "taken_at": "2026-11-20T10:02:00Z", "global_pools": [{"page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": 0, "surplus_hugepages": 0, "nr_overcommit_hugepages": 0}, {"page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": 0, "surplus_hugepages": 0, "nr_overcommit_hugepages": null}]}', '[{"pid": 10, "name": "small", "pss_bytes": null, "rss_bytes": 1048576, "vm_pte_bytes": 4096, "anon_huge_bytes": null, "start_time_ticks": 5, "shared_hugetlb_bytes": null, "private_hugetlb_bytes": null, "shmem_pmd_mapped_bytes": null}, {"pid": 11, "name": "postgres", "pss_bytes": null, "rss_bytes": 1073741824, "vm_pte_bytes": 8192, "anon_huge_bytes": null, "start_time_ticks": 6, "shared_hugetlb_bytes": null, "private_hugetlb_bytes": null, "shmem_pmd_mapped_bytes": null}]', '[{"name": "meminfo", "reason": null, "status": "ok", "duration_seconds": 0.001}]', 'd5190ab6-2716-4756-8029-31db6f8a5133', 4096),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '00000000000000000000000000000003', 'old-2', true, 'x86_64', 'AMD EPYC', true, 68719476736, 1, '0.1.0', '2026-11-22 15:51:02.986446+00', '2026-11-22 15:51:03.145726+00', '2026-11-20 10:02:00+00', '{"cpu": {"brand": "AMD EPYC", "model": 2, "family": 26, "online": 16, "vendor": "AuthenticAMD", "stepping": 1}, "thp": {"defrag": "madvise", "enabled": "madvise", "shmem_enabled": "never"}, "hypervisor": "KVM", "numa_nodes": [{"id": 0, "cpus": "0-15", "mem_total_bytes": 68719476736}], "hvo_enabled": false, "virtualised": true, "architecture": "x86_64", "cgroup_version": 2, "kernel_release": "6.12.0", "base_page_bytes": 4096, "kernel_command_line": "ro quiet", "huge_page_sizes_bytes": [2097152, 1073741824], "default_huge_page_bytes": 2097152}', '{"numa": [{"id": 0, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "anon_huge_pages_bytes": null}], "pools": [{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}], "memory": {"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}, "taken_at": "2026-11-20T10:02:00Z", "global_pools": [{"page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": 0, "surplus_hugepages": 0, "nr_overcommit_hugepages": 0}, {"page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": 0, "surplus_hugepages": 0, "nr_overcommit_hugepages": null}]}', '[{"pid": 10, "name": "small", "pss_bytes": null, "rss_bytes": 1048576, "vm_pte_bytes": 4096, "anon_huge_bytes": null, "start_time_ticks": 5, "shared_hugetlb_bytes": null, "private_hugetlb_bytes": null, "shmem_pmd_mapped_bytes": null}, {"pid": 11, "name": "postgres", "pss_bytes": null, "rss_bytes": 1073741824, "vm_pte_bytes": 8192, "anon_huge_bytes": null, "start_time_ticks": 6, "shared_hugetlb_bytes": null, "private_hugetlb_bytes": null, "shmem_pmd_mapped_bytes": null}]', '[{"name": "meminfo", "reason": null, "status": "ok", "duration_seconds": 0.001}]', 'ab120070-4ab9-4f93-aa4b-2ceb4d7d1e5d', 4096),
	('5c78457d-5107-49e2-abc4-18efe330a008', '00000000000000000000000000000004', 'old-3', true, 'x86_64', 'AMD EPYC', true, 68719476736, 1, '0.1.0', '2026-11-22 15:51:06.518063+00', '2026-11-22 15:51:06.675902+00', '2026-11-20 10:02:00+00', '{"cpu": {"brand": "AMD EPYC", "model": 2, "family": 26, "online": 16, "vendor": "AuthenticAMD", "stepping": 1}, "thp": {"defrag": "madvise", "enabled": "madvise", "shmem_enabled": "never"}, "hypervisor": "KVM", "numa_nodes": [{"id": 0, "cpus": "0-15", "mem_total_bytes": 68719476736}], "hvo_enabled": false, "virtualised": true, "architecture": "x86_64", "cgroup_version": 2, "kernel_release": "6.12.0", "base_page_bytes": 4096, "kernel_command_line": "ro quiet", "huge_page_sizes_bytes": [2097152, 1073741824], "default_huge_page_bytes": 2097152}', '{"numa": [{"id": 0, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "anon_huge_pages_bytes": null}], "pools": [{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}], "memory": {"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}, "taken_at": "2026-11-20T10:02:00Z", "global_pools": [{"page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": 0, "surplus_hugepages": 0, "nr_overcommit_hugepages": 0}, {"page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": 0, "surplus_hugepages": 0, "nr_overcommit_hugepages": null}]}', '[{"pid": 10, "name": "small", "pss_bytes": null, "rss_bytes": 1048576, "vm_pte_bytes": 4096, "anon_huge_bytes": null, "start_time_ticks": 5, "shared_hugetlb_bytes": null, "private_hugetlb_bytes": null, "shmem_pmd_mapped_bytes": null}, {"pid": 11, "name": "postgres", "pss_bytes": null, "rss_bytes": 1073741824, "vm_pte_bytes": 8192, "anon_huge_bytes": null, "start_time_ticks": 6, "shared_hugetlb_bytes": null, "private_hugetlb_bytes": null, "shmem_pmd_mapped_bytes": null}]', '[{"name": "meminfo", "reason": null, "status": "ok", "duration_seconds": 0.001}]', '7d39a36e-4bba-471c-b6d4-f6c42f41119e', 4096);


--
-- Data for Name: plans; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.plans VALUES
	('3b925a83-3feb-48ed-8365-8667903f6346', 'ee55792e-7265-4018-b3b8-fb1fffd62018', 1, NULL, '2026-11-22 15:51:06.892872+00', 'Reserve 33,894 pages of 2M (66.2 GiB) on db-1.', '{"node": "db-1", "headline": "Reserve 33,894 pages of 2M (66.2 GiB) on db-1.", "pools": [{"numa_node": 0, "page_bytes": 2097152, "demand_pages": 33558, "slack_pages": 336, "pages": 33894, "present_pages": null, "explanation": {"formula": "pages = demand + max(ceil(slack / page), least slack)", "inputs": [{"name": "demand", "value": "33558 pages", "source": "computed", "reference": null}, {"name": "slack", "value": "703629885 bytes: 0.01 of the segments or the rules'' error", "source": "given", "reference": null}, {"name": "least slack", "value": "2 pages", "source": "given", "reference": null}], "reference": "policy of the scenario; the demand''s own rule is with each instance"}}], "instances": [{"name": "orders", "engine": "postgresql", "numa_nodes": [0], "page_bytes": 2097152, "demand": {"engine": "postgresql", "version": "17", "page_bytes": 2097152, "wants_pool": true, "segments": [{"name": "main shared memory segment", "segment_bytes": 70376095744, "count": 1, "pages": 33558, "explanation": {"formula": "pages = floor(segment / page) + 1; segment = sum of the terms, to the next 8 kB", "inputs": [{"name": "shared_buffers", "value": "64.8 GiB", "source": "computed", "reference": null}, {"name": "buffer lookup table", "value": "449 MiB", "source": "computed", "reference": null}, {"name": "checkpointer queue", "value": "256 MiB", "source": "computed", "reference": null}, {"name": "wal_buffers", "value": "16.0 MiB", "source": "computed", "reference": null}, {"name": "SLRU caches", "value": "33.2 MiB", "source": "computed", "reference": null}, {"name": "lock tables", "value": "13.2 MiB", "source": "computed", "reference": null}, {"name": "predicate locks", "value": "8.63 MiB", "source": "computed", "reference": null}, {"name": "query texts", "value": "529 KiB", "source": "computed", "reference": null}, {"name": "standby transaction ids", "value": "166 KiB", "source": "computed", "reference": null}, {"name": "processes and slots", "value": "3.62 MiB", "source": "computed", "reference": null}, {"name": "segment", "value": "65.5 GiB", "source": "computed", "reference": null}, {"name": "page", "value": "2 MiB", "source": "computed", "reference": null}], "reference": "PostgreSQL src/backend/storage/ipc/ipci.c, CalculateShmemSize and InitializeShmemGUCs"}}], "segment_bytes": 70376095744, "pages": 33558, "error_pages": 0, "waste_bytes": 131072, "pool_bytes": 68719476736, "private_bytes_per_connection": 18140365, "connections": 500, "process_per_connection": true, "page_cache_bytes": 103079215104, "settings": [{"name": "huge_pages", "value": "on", "reason": "With try the server falls back to base pages without a message; with on it refuses to start."}], "fits": [], "notes": ["huge_pages = try falls back to base pages without a message; set it to on.", "Check with the server stopped: postgres -D $PGDATA -C shared_memory_size_in_huge_pages."], "also_pages": [], "private_fixed_bytes": null}, "page_tables_base_bytes": 68864000000, "page_tables_huge_bytes": 137216000, "chosen": {"page_bytes": 2097152, "pages": 33558, "feasible": true, "score": 26.64, "why": "gain +1.74, memory +25.00 (128 KiB rounding waste), operation -0.10 points"}, "runner_up": {"page_bytes": 1073741824, "pages": 66, "feasible": true, "score": 26.556, "why": "gain +2.28, memory +24.87 (468 MiB rounding waste), operation -0.60 points"}, "why": "2M: gain +1.74, memory +25.00 (128 KiB rounding waste), operation -0.10 points. 33,558 pages hold 65.5 GiB in one mapping, 128 KiB of the last page stay empty. The runner-up, 1G, loses by 0.08 points, most of it by operation (+0.50) (a tie by gain and memory).", "pool_benefit": null}], "ledger": {"mem_total_bytes": 274877906944, "parts": [{"kind": "kernel", "name": "kernel and slab", "numa_node": 0, "bytes": 1258291200, "source": "given", "page_bytes": null, "explanation": {"formula": "kernel used", "inputs": [{"name": "MemTotal", "value": "256 GiB", "source": "given", "reference": null}, {"name": "kernel", "value": "1.17 GiB", "source": "given", "reference": null}], "reference": "unreclaimable slab and kernel stacks, or as given"}}, {"kind": "system_reserved", "name": "system-reserved", "numa_node": 0, "bytes": 2147483648, "source": "given", "page_bytes": null, "explanation": {"formula": "system-reserved", "inputs": [{"name": "systemReserved", "value": "2 GiB", "source": "given", "reference": null}], "reference": "given"}}, {"kind": "tenants", "name": "backup", "numa_node": 0, "bytes": 2147483648, "source": "given", "page_bytes": null, "explanation": {"formula": "count x request", "inputs": [{"name": "count", "value": "1", "source": "given", "reference": null}, {"name": "request", "value": "2 GiB", "source": "given", "reference": null}, {"name": "limit", "value": "6 GiB", "source": "given", "reference": null}], "reference": "planned at the request; what limits allow beyond it is in the risk"}}, {"kind": "engine_private", "name": "orders: connections", "numa_node": 0, "bytes": 9070182500, "source": "computed", "page_bytes": null, "explanation": {"formula": "connections x private memory of one", "inputs": [{"name": "connections", "value": "500", "source": "given", "reference": null}, {"name": "private memory of one", "value": "17.3 MiB", "source": "assumed", "reference": null}], "reference": "the engine''s rule"}}, {"kind": "page_tables", "name": "orders: page tables", "numa_node": 0, "bytes": 137216000, "source": "computed", "page_bytes": null, "explanation": {"formula": "processes x tables of every level over the segment", "inputs": [{"name": "processes", "value": "500", "source": "given", "reference": null}, {"name": "segment", "value": "65.5 GiB", "source": "computed", "reference": null}, {"name": "page size", "value": "2M", "source": "computed", "reference": null}], "reference": "upper bound: every process touches the whole segment"}}, {"kind": "page_cache", "name": "orders: page cache", "numa_node": 0, "bytes": 103079215104, "source": "computed", "page_bytes": null, "explanation": {"formula": "min(what the engine counts on, free memory above the margin)", "inputs": [{"name": "counted on", "value": "96 GiB", "source": "computed", "reference": null}, {"name": "granted", "value": "96 GiB", "source": "computed", "reference": null}], "reference": "the engine''s own setting for the page cache"}}, {"kind": "pool", "name": "2M pool", "numa_node": 0, "bytes": 70376226816, "source": "computed", "page_bytes": 2097152, "explanation": {"formula": "demand pages x page size", "inputs": [{"name": "demand pages", "value": "33558", "source": "computed", "reference": null}, {"name": "page size", "value": "2 MiB", "source": "given", "reference": null}], "reference": "Documentation/admin-guide/mm/hugetlbpage.rst"}}, {"kind": "pool_slack", "name": "2M pool slack", "numa_node": 0, "bytes": 704643072, "source": "computed", "page_bytes": 2097152, "explanation": {"formula": "slack pages x page size", "inputs": [{"name": "slack pages", "value": "336", "source": "computed", "reference": null}, {"name": "page size", "value": "2 MiB", "source": "given", "reference": null}], "reference": "Documentation/admin-guide/mm/hugetlbpage.rst"}}, {"kind": "free", "name": "free", "numa_node": 0, "bytes": 85957164956, "source": "computed", "page_bytes": null, "explanation": {"formula": "MemTotal - all other parts", "inputs": [], "reference": "the ledger sums to MemTotal"}}], "struct_page_bytes": 4294967296}, "gains": [{"instance": "orders", "backing": "4K", "page_bytes": 4096, "saving_ns_per_operation": {"low": 0.0, "likely": 0.0, "high": 0.0}, "speedup": {"low": 1.0, "likely": 1.0, "high": 1.0}, "page_tables_bytes": 68864000000, "confidence": "high", "inputs": [], "statement": "The base page size: what the others are compared with."}, {"instance": "orders", "backing": "2M", "page_bytes": 2097152, "saving_ns_per_operation": {"low": 127.09164027887402, "likely": 813.141024270787, "high": 1640.1240994620748}, "speedup": {"low": 1.002676066665599, "likely": 1.017372615625429, "high": 1.0356712157204688}, "page_tables_bytes": 137216000, "confidence": "low", "inputs": [{"name": "TLB entries for 4K", "value": "2048", "source": "catalogue", "reference": null}, {"name": "effective granule of 2M", "value": "2M", "source": "computed", "reference": null}, {"name": "TLB entries for 2M", "value": "1024", "source": "catalogue", "reference": null}, {"name": "first-level miss", "value": "2.30 ns", "source": "assumed", "reference": null}, {"name": "second-level cache latency", "value": "3 to 7 ns", "source": "assumed", "reference": null}, {"name": "last-level cache latency", "value": "12 to 45 ns", "source": "assumed", "reference": null}, {"name": "memory latency", "value": "75 to 160 ns", "source": "assumed", "reference": null}, {"name": "last-level cache", "value": "32 MiB", "source": "assumed", "reference": null}, {"name": "row_bytes", "value": "128", "source": "assumed", "reference": null}, {"name": "working_set_bytes", "value": "68719476736", "source": "given", "reference": null}, {"name": "zipf_s", "value": "0.9", "source": "given", "reference": null}, {"name": "cold touches per lookup", "value": "8 to 11", "source": "computed", "reference": "PostgreSQL storage/buffer, nbtree and heap; counted on a real server"}, {"name": "private page tables in use", "value": "48", "source": "given", "reference": null}, {"name": "operation''s own cost", "value": "47619 ns at base pages", "source": "given", "reference": null}], "statement": "2M pages: 813 ns less per operation (127 to 1640), from 12.8 cold places touched. That is +1.7 % (+0.3 to +3.6 %) of the operation''s given cost."}, {"instance": "orders", "backing": "THP", "page_bytes": 2097152, "saving_ns_per_operation": {"low": 0.0, "likely": 0.0, "high": 1640.1240994620748}, "speedup": {"low": 1.0, "likely": 1.0, "high": 1.0356712157204688}, "page_tables_bytes": 137216000, "confidence": "low", "inputs": [{"name": "TLB entries for 4K", "value": "2048", "source": "catalogue", "reference": null}, {"name": "effective granule of 2M", "value": "2M", "source": "computed", "reference": null}, {"name": "TLB entries for 2M", "value": "1024", "source": "catalogue", "reference": null}, {"name": "first-level miss", "value": "2.30 ns", "source": "assumed", "reference": null}, {"name": "second-level cache latency", "value": "3 to 7 ns", "source": "assumed", "reference": null}, {"name": "last-level cache latency", "value": "12 to 45 ns", "source": "assumed", "reference": null}, {"name": "memory latency", "value": "75 to 160 ns", "source": "assumed", "reference": null}, {"name": "last-level cache", "value": "32 MiB", "source": "assumed", "reference": null}, {"name": "row_bytes", "value": "128", "source": "assumed", "reference": null}, {"name": "working_set_bytes", "value": "68719476736", "source": "given", "reference": null}, {"name": "zipf_s", "value": "0.9", "source": "given", "reference": null}, {"name": "cold touches per lookup", "value": "8 to 11", "source": "computed", "reference": "PostgreSQL storage/buffer, nbtree and heap; counted on a real server"}, {"name": "private page tables in use", "value": "48", "source": "given", "reference": null}, {"name": "operation''s own cost", "value": "47619 ns at base pages", "source": "given", "reference": null}, {"name": "transparent_hugepage/enabled", "value": "always", "source": "given", "reference": null}], "statement": "THP does not reach this memory as the node is set: shared memory follows shmem_enabled, and under madvise an engine must ask for it."}, {"instance": "orders", "backing": "1G", "page_bytes": 1073741824, "saving_ns_per_operation": {"low": 298.0882321983273, "likely": 1062.6930255179552, "high": 2116.847802477032}, "speedup": {"low": 1.0062992854764725, "likely": 1.0228259500726813, "high": 1.0465218783050163}, "page_tables_bytes": 2048000, "confidence": "low", "inputs": [{"name": "TLB entries for 4K", "value": "2048", "source": "catalogue", "reference": null}, {"name": "effective granule of 1G", "value": "1G", "source": "computed", "reference": null}, {"name": "TLB entries for 1G", "value": "1024", "source": "catalogue", "reference": null}, {"name": "first-level miss", "value": "2.30 ns", "source": "assumed", "reference": null}, {"name": "second-level cache latency", "value": "3 to 7 ns", "source": "assumed", "reference": null}, {"name": "last-level cache latency", "value": "12 to 45 ns", "source": "assumed", "reference": null}, {"name": "memory latency", "value": "75 to 160 ns", "source": "assumed", "reference": null}, {"name": "last-level cache", "value": "32 MiB", "source": "assumed", "reference": null}, {"name": "row_bytes", "value": "128", "source": "assumed", "reference": null}, {"name": "working_set_bytes", "value": "68719476736", "source": "given", "reference": null}, {"name": "zipf_s", "value": "0.9", "source": "given", "reference": null}, {"name": "cold touches per lookup", "value": "8 to 11", "source": "computed", "reference": "PostgreSQL storage/buffer, nbtree and heap; counted on a real server"}, {"name": "private page tables in use", "value": "48", "source": "given", "reference": null}, {"name": "operation''s own cost", "value": "47619 ns at base pages", "source": "given", "reference": null}], "statement": "1G pages: 1063 ns less per operation (298 to 2117), from 12.8 cold places touched. That is +2.3 % (+0.6 to +4.7 %) of the operation''s given cost."}], "findings": [{"code": "silent_fallback", "state": "attention", "subject": "orders", "title": "A short pool may go unnoticed", "reason": "With a short pool the engine silently uses base pages.", "fix": "Set huge_pages = on.", "evidence": [{"name": "huge_pages", "value": "try", "source": "given", "reference": null}]}, {"code": "thp_always", "state": "attention", "subject": "db-1", "title": "THP is always on beside a database", "reason": "THP is always on: private memory of connections grows by whole 2M pages, and compaction stalls appear.", "fix": "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, and transparent_hugepage=madvise at boot.", "evidence": [{"name": "enabled", "value": "always", "source": "measured", "reference": null}]}, {"code": "hvo_off", "state": "attention", "subject": "db-1", "title": "927 MiB of struct page memory are not returned", "reason": "HVO is off; it would return 927 MiB.", "fix": "Boot with hugetlb_free_vmemmap=on, or set vm.hugetlb_optimize_vmemmap=1 before reserving.", "evidence": [{"name": "HVO returns", "value": "927 MiB", "source": "computed", "reference": null}]}, {"code": "pool_short", "state": "unknown", "subject": "2M on NUMA node 0", "title": "Whether the 33,894 planned pages are reserved is not known", "reason": "What the node has reserved today is not known.", "fix": null, "evidence": []}, {"code": "buffer_pool_mistaken_for_segment", "state": "unknown", "subject": "orders", "title": "Whether the pool holds the whole segment is not known", "reason": "What the node has reserved today is not known.", "fix": null, "evidence": []}, {"code": "pool_idle", "state": "unknown", "subject": "db-1", "title": "Whether reserved pages are idle is not known", "reason": "What the node has reserved today is not known.", "fix": null, "evidence": []}, {"code": "fallback_to_base_pages", "state": "unknown", "subject": "orders", "title": "Whether it runs on huge pages is not known", "reason": "No running process of this instance was observed.", "fix": null, "evidence": []}, {"code": "kernel_command_line", "state": "unknown", "subject": "db-1", "title": "Whether the kernel takes its huge page words is not known", "reason": "The kernel command line is not known.", "fix": null, "evidence": []}, {"code": "surplus_pages", "state": "unknown", "subject": "db-1", "title": "Whether pages are taken beyond the pools is not known", "reason": "The node''s global pools were not observed.", "fix": null, "evidence": []}, {"code": "memory_fit", "state": "ok", "subject": "db-1", "title": "The plan fits the node''s memory", "reason": "80.1 GiB stay free under the plan.", "fix": null, "evidence": []}, {"code": "risk_above_policy", "state": "ok", "subject": "db-1", "title": "Ordinary memory is safe enough by the policy", "reason": "At most 0, the policy allows 0.01.", "fix": null, "evidence": [{"name": "probability", "value": "0 (0 to 0)", "source": "computed", "reference": null}, {"name": "policy", "value": "0.01", "source": "given", "reference": null}]}, {"code": "page_size_not_available", "state": "ok", "subject": "orders", "title": "2M pages can be had", "reason": "2M can be had here.", "fix": null, "evidence": []}, {"code": "wrong_default_size", "state": "ok", "subject": "orders", "title": "It uses the kernel''s default page size", "reason": "It uses the default size, 2M.", "fix": null, "evidence": [{"name": "default", "value": "2M", "source": "given", "reference": null}]}, {"code": "fragmentation", "state": "ok", "subject": "2M on NUMA node 0", "title": "The pages are reserved before memory is fragmented", "reason": "Reserved at boot, before memory is fragmented.", "fix": null, "evidence": []}, {"code": "fractured_guest", "state": "ok", "subject": "2M", "title": "A TLB entry covers a whole page", "reason": "The node is not a guest: a TLB entry covers what the kernel maps.", "fix": null, "evidence": []}, {"code": "rounding_waste", "state": "ok", "subject": "orders", "title": "The pages are filled", "reason": "128 KiB stay empty.", "fix": null, "evidence": [{"name": "empty", "value": "128 KiB", "source": "computed", "reference": null}, {"name": "pages", "value": "65.5 GiB", "source": "computed", "reference": null}]}, {"code": "page_cache_short", "state": "ok", "subject": "orders", "title": "The page cache it counts on is there", "reason": "96 GiB are left for it.", "fix": null, "evidence": [{"name": "counted on", "value": "96 GiB", "source": "computed", "reference": null}, {"name": "there", "value": "96 GiB", "source": "computed", "reference": null}]}, {"code": "double_counting", "state": "ok", "subject": "db-1", "title": "Memory is counted once", "reason": "No tenant carries the name of a database or its engine.", "fix": null, "evidence": []}, {"code": "pool_invisible_to_monitoring", "state": "ok", "subject": "2M", "title": "Monitoring sees this pool", "reason": "The default size is in /proc/meminfo and in node_exporter.", "fix": null, "evidence": []}], "net_memory": {"locked_bytes": 71080869888, "used_bytes": 70376095744, "idle_bytes": 704774144, "returned_page_tables_bytes": 68726784000, "returned_hvo_bytes": 0, "net_bytes": 68022009856, "break_even_idle_bytes": 68726784000, "explanation": {"formula": "net = page tables returned + struct pages returned - (locked - used)", "inputs": [{"name": "locked", "value": "66.2 GiB", "source": "computed", "reference": null}, {"name": "used by segments", "value": "65.5 GiB", "source": "computed", "reference": null}, {"name": "page tables returned", "value": "64.0 GiB", "source": "computed", "reference": "upper bound: all of it touched"}, {"name": "struct pages returned", "value": "0 B", "source": "computed", "reference": null}], "reference": "translation sheet section 9; Documentation/mm/vmemmap_dedup.rst"}}, "risk": {"probability": {"low": 0.0, "likely": 0.0, "high": 0.0}, "policy": 0.01, "meets_policy": true, "basis": "tenants against 178 GiB of room; backup x 1: evenly between request and limit; copies independent to moving together", "numa_nodes": []}, "kubernetes": null, "assumptions": ["free margin: 2.56 GiB (1 % of MemTotal)", "page tables: every connection touches the whole segment (upper bound)"], "unknowns": ["the node''s present pools"], "forecasts": []}', '[{"kind": "sysctl", "filename": "60-hugeplan.conf", "media_type": "text/plain", "content": "# /etc/sysctl.d/60-hugeplan.conf: db-1; apply with: sysctl --load=/etc/sysctl.d/60-hugeplan.conf\n# Huge pages of the default size, 2M.\nvm.nr_hugepages = 33894\nvm.nr_overcommit_hugepages = 0\n", "verify": "test \"$(sysctl -n vm.nr_hugepages)\" -eq 33894", "rollback": "rm -f /etc/sysctl.d/60-hugeplan.conf\nsysctl -w vm.nr_hugepages=0"}, {"kind": "kernel_command_line", "filename": "60-hugeplan.cfg", "media_type": "text/plain", "content": "# /etc/default/grub.d/60-hugeplan.cfg: pools of db-1, reserved at boot\n# Then run update-grub (or grub2-mkconfig, or kernelopts of your boot loader) and reboot.\n# Remove other hugepages= and hugepagesz= words first: the kernel reads them in order.\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX default_hugepagesz=2M hugepagesz=2M hugepages=33894 transparent_hugepage=madvise\"\n", "verify": "cat /proc/cmdline\ntest \"$(cat /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages)\" -eq 33894", "rollback": "rm -f /etc/default/grub.d/60-hugeplan.cfg\nupdate-grub\nreboot"}, {"kind": "numa_script", "filename": "hugeplan-reserve.sh", "media_type": "text/x-shellscript", "content": "#!/bin/sh\n# Huge pages of db-1, per NUMA node. Run as root; fails when a count is not reached.\nset -u\nfailed=0\n\nreserve() { # node directory count\n    file=/sys/devices/system/node/node$1/hugepages/$2/nr_hugepages\n    if [ ! -w \"$file\" ]; then\n        echo \"hugeplan: $file cannot be written\" >&2\n        failed=1\n        return\n    fi\n    echo \"$3\" > \"$file\"\n    now=$(cat \"$file\")\n    if [ \"$now\" -lt \"$3\" ]; then\n        echo 1 > /proc/sys/vm/compact_memory\n        echo \"$3\" > \"$file\"\n        now=$(cat \"$file\")\n    fi\n    if [ \"$now\" -ne \"$3\" ]; then\n        echo \"hugeplan: node $1 $2: asked for $3 pages, has $now\" >&2\n        failed=1\n    fi\n}\n\nreserve 0 hugepages-2048kB 33894\nexit $failed\n", "verify": "test \"$(cat /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages)\" -eq 33894", "rollback": "echo 0 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"}, {"kind": "tmpfiles", "filename": "60-hugeplan-tmpfiles.conf", "media_type": "text/plain", "content": "# /etc/tmpfiles.d/60-hugeplan.conf: huge pages of db-1, written at boot by systemd-tmpfiles\n# A count that cannot be met is met in part without an error: run the verify commands.\nw /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages - - - - 33894\n", "verify": "systemd-tmpfiles --create /etc/tmpfiles.d/60-hugeplan.conf\ntest \"$(cat /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages)\" -eq 33894", "rollback": "rm -f /etc/tmpfiles.d/60-hugeplan.conf\necho 0 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"}, {"kind": "postgresql_conf", "filename": "orders-hugepages.conf", "media_type": "text/plain", "content": "# orders: settings of its plan\n# With try the server falls back to base pages without a message; with on it refuses to start.\nhuge_pages = on\n", "verify": "postgres -D \"$PGDATA\" -C shared_memory_size_in_huge_pages  # with the server stopped\npsql -c \"SHOW huge_pages_status\"  # PostgreSQL 17 and later; on is right", "rollback": "# delete these lines from postgresql.conf and restart the server"}]');


--
-- Data for Name: report_documents_20261121; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: report_documents_20261122; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.report_documents_20261122 VALUES
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '2026-11-22 15:50:56.043562+00', '67c3ce8d-e2cb-5ca0-a0b9-a4f6213a7695', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202236376333636538642d653263622d356361302d613062392d613466363231336137363935222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30303a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303031222c20226e6f64655f6e616d65223a20226f6c642d30222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30303a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a207b22736368656d615f76657273696f6e223a20312c2022746f6f6c223a207b226e616d65223a2022746c6262656e6368222c202276657273696f6e223a2022302e312e30227d2c2022636f6d6d616e64223a202272756e222c202270726f66696c65223a2022717569636b222c202273656564223a20312c2022737461727465645f6174223a2022323032362d31312d32305431323a30303a30305a222c20226475726174696f6e5f7365636f6e6473223a2034312e322c2022657869745f737461747573223a20302c202273656374696f6e73223a205b7b226e616d65223a202267656f6d65747279222c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226475726174696f6e5f7365636f6e6473223a20332e317d2c207b226e616d65223a20226c6174656e6379222c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226475726174696f6e5f7365636f6e6473223a2033302e307d5d2c2022656e7669726f6e6d656e74223a207b227a756c75223a20312c2022616c706861223a207b226b657074223a2022696e206f72646572227d7d2c202267656f6d65747279223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226c6576656c73223a205b7b226c6576656c223a20312c20226b696e64223a202264617461222c2022706167655f6279746573223a20343039362c2022656e7472696573223a2039362c2022656e74726965735f6d696e223a2039352c2022656e74726965735f6d6178223a2039372c202277617973223a202266756c6c222c2022736f75726365223a20226d65617375726564222c2022636f6e666964656e6365223a202268696768222c20226e6f7465223a206e756c6c7d5d2c20226566666563746976655f6772616e756c65223a205b7b226261636b696e67223a2022544850222c20226261636b696e675f6b696e64223a2022746870222c2022706167655f6279746573223a20323039373135322c20226772616e756c655f6279746573223a20323039373135322c2022737461747573223a20226f6b227d2c207b226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226772616e756c655f6279746573223a20343039362c2022737461747573223a2022667261637475726564227d5d2c202270656e616c7479223a205b7b226c6576656c223a20226c325f686974222c2022706167655f6279746573223a20343039362c20226e73223a20322e33332c20226e735f6d696e223a20322e322c20226e735f6d6178223a20322e352c20226379636c6573223a20372e307d5d2c2022636c6f636b223a207b22636f72655f687a223a20333030303030303030302e302c20226c315f6869745f6e73223a20312e36372c20226c315f6869745f6379636c6573223a20352e307d2c202264697361677265656d656e7473223a205b7b226c6576656c223a20312c2022706167655f6279746573223a20343039362c20226669656c64223a2022656e7472696573222c202276616c756573223a207b226370756964223a2036342c20226d65617375726564223a2039367d2c202274657874223a20222e227d5d2c2022637572766573223a205b7b226e616d65223a202267656f6d6574727920616c696173656420344b222c2022785f6e616d65223a20227061676573222c20226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226c61796f7574223a2022616c6961736564222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d5d7d2c20226c6174656e6379223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022637572766573223a205b7b226e616d65223a20226c6174656e6379206c696e655f7065725f7061676520344b222c2022785f6e616d65223a2022666f6f747072696e745f6279746573222c20226261636b696e67223a2022344b222c20226261636b696e675f6b696e64223a202262617365222c2022706167655f6279746573223a20343039362c20226c61796f7574223a20226c696e655f7065725f70616765222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d2c207b226e616d65223a20226c6174656e6379206c696e655f7065725f7061676520324d222c2022785f6e616d65223a2022666f6f747072696e745f6279746573222c20226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226c61796f7574223a20226c696e655f7065725f70616765222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d5d2c20227061697265645f64656c746173223a205b7b226261636b696e67223a2022324d222c20226c61796f7574223a20226c696e655f7065725f70616765222c202278223a20313037333734313832342c202264656c74615f6e73223a202d33352e312c2022636939355f6c6f775f6e73223a202d33382c2022636939355f686967685f6e73223a202d33317d5d2c20227072657373757265223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022726567696f6e5f6279746573223a203533363837303931322c2022726567696f6e5f6261636b696e67223a2022324d222c20226c696e65735f7065725f70616765223a2031362c2022706f696e7473223a205b7b226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c2022666f6f747072696e745f6279746573223a203533363837303931322c20226c696e65735f6265747765656e223a2036342c2022776169745f6e73223a20302c2022706572696f645f6e73223a203935302e302c2022626173655f6e735f703530223a203336342e302c20226e735f703530223a203235372e302c202264656c74615f6e73223a202d3130372e302c2022636939355f6c6f775f6e73223a202d3132302e302c2022636939355f686967685f6e73223a202d39342e302c20227061697273223a20367d5d7d7d2c202276656e646f725f657874656e73696f6e223a207b226b657074223a20747275657d7d2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '2026-11-22 15:50:56.169745+00', 'aac1bdf1-fbdf-5e4e-9b72-f35080b168eb', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202261616331626466312d666264662d356534652d396237322d663335303830623136386562222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30313a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303031222c20226e6f64655f6e616d65223a20226f6c642d30222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30313a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a206e756c6c2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '2026-11-22 15:50:56.213976+00', '79312c29-369d-58e9-a826-30bb3eab773f', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202237393331326332392d333639642d353865392d613832362d333062623365616237373366222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30323a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303031222c20226e6f64655f6e616d65223a20226f6c642d30222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30323a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a206e756c6c2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', '2026-11-22 15:50:59.137721+00', '0305284b-1463-51f8-9bc4-504cb29b9d24', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202230333035323834622d313436332d353166382d396263342d353034636232396239643234222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30303a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303032222c20226e6f64655f6e616d65223a20226f6c642d31222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30303a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a207b22736368656d615f76657273696f6e223a20312c2022746f6f6c223a207b226e616d65223a2022746c6262656e6368222c202276657273696f6e223a2022302e312e30227d2c2022636f6d6d616e64223a202272756e222c202270726f66696c65223a2022717569636b222c202273656564223a20312c2022737461727465645f6174223a2022323032362d31312d32305431323a30303a30305a222c20226475726174696f6e5f7365636f6e6473223a2034312e322c2022657869745f737461747573223a20302c202273656374696f6e73223a205b7b226e616d65223a202267656f6d65747279222c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226475726174696f6e5f7365636f6e6473223a20332e317d2c207b226e616d65223a20226c6174656e6379222c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226475726174696f6e5f7365636f6e6473223a2033302e307d5d2c2022656e7669726f6e6d656e74223a207b227a756c75223a20312c2022616c706861223a207b226b657074223a2022696e206f72646572227d7d2c202267656f6d65747279223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226c6576656c73223a205b7b226c6576656c223a20312c20226b696e64223a202264617461222c2022706167655f6279746573223a20343039362c2022656e7472696573223a2039362c2022656e74726965735f6d696e223a2039352c2022656e74726965735f6d6178223a2039372c202277617973223a202266756c6c222c2022736f75726365223a20226d65617375726564222c2022636f6e666964656e6365223a202268696768222c20226e6f7465223a206e756c6c7d5d2c20226566666563746976655f6772616e756c65223a205b7b226261636b696e67223a2022544850222c20226261636b696e675f6b696e64223a2022746870222c2022706167655f6279746573223a20323039373135322c20226772616e756c655f6279746573223a20323039373135322c2022737461747573223a20226f6b227d2c207b226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226772616e756c655f6279746573223a20343039362c2022737461747573223a2022667261637475726564227d5d2c202270656e616c7479223a205b7b226c6576656c223a20226c325f686974222c2022706167655f6279746573223a20343039362c20226e73223a20322e33332c20226e735f6d696e223a20322e322c20226e735f6d6178223a20322e352c20226379636c6573223a20372e307d5d2c2022636c6f636b223a207b22636f72655f687a223a20333030303030303030302e302c20226c315f6869745f6e73223a20312e36372c20226c315f6869745f6379636c6573223a20352e307d2c202264697361677265656d656e7473223a205b7b226c6576656c223a20312c2022706167655f6279746573223a20343039362c20226669656c64223a2022656e7472696573222c202276616c756573223a207b226370756964223a2036342c20226d65617375726564223a2039367d2c202274657874223a20222e227d5d2c2022637572766573223a205b7b226e616d65223a202267656f6d6574727920616c696173656420344b222c2022785f6e616d65223a20227061676573222c20226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226c61796f7574223a2022616c6961736564222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d5d7d2c20226c6174656e6379223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022637572766573223a205b7b226e616d65223a20226c6174656e6379206c696e655f7065725f7061676520344b222c2022785f6e616d65223a2022666f6f747072696e745f6279746573222c20226261636b696e67223a2022344b222c20226261636b696e675f6b696e64223a202262617365222c2022706167655f6279746573223a20343039362c20226c61796f7574223a20226c696e655f7065725f70616765222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d2c207b226e616d65223a20226c6174656e6379206c696e655f7065725f7061676520324d222c2022785f6e616d65223a2022666f6f747072696e745f6279746573222c20226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226c61796f7574223a20226c696e655f7065725f70616765222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d5d2c20227061697265645f64656c746173223a205b7b226261636b696e67223a2022324d222c20226c61796f7574223a20226c696e655f7065725f70616765222c202278223a20313037333734313832342c202264656c74615f6e73223a202d33352e312c2022636939355f6c6f775f6e73223a202d33382c2022636939355f686967685f6e73223a202d33317d5d2c20227072657373757265223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022726567696f6e5f6279746573223a203533363837303931322c2022726567696f6e5f6261636b696e67223a2022324d222c20226c696e65735f7065725f70616765223a2031362c2022706f696e7473223a205b7b226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c2022666f6f747072696e745f6279746573223a203533363837303931322c20226c696e65735f6265747765656e223a2036342c2022776169745f6e73223a20302c2022706572696f645f6e73223a203935302e302c2022626173655f6e735f703530223a203336342e302c20226e735f703530223a203235372e302c202264656c74615f6e73223a202d3130372e302c2022636939355f6c6f775f6e73223a202d3132302e302c2022636939355f686967685f6e73223a202d39342e302c20227061697273223a20367d5d7d7d2c202276656e646f725f657874656e73696f6e223a207b226b657074223a20747275657d7d2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', '2026-11-22 15:50:59.192359+00', 'c6eccf63-6925-5ab4-b34c-f35535f2d0fa', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202263366563636636332d363932352d356162342d623334632d663335353335663264306661222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30313a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303032222c20226e6f64655f6e616d65223a20226f6c642d31222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30313a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a206e756c6c2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', '2026-11-22 15:50:59.224508+00', '27e95683-7b2b-5ee0-aa8e-30deab6bd31a', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202232376539353638332d376232622d356565302d616138652d333064656162366264333161222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30323a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303032222c20226e6f64655f6e616d65223a20226f6c642d31222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30323a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a206e756c6c2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '2026-11-22 15:51:02.986446+00', '0a3559c6-e7e1-5e31-b819-13179b3200b6', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202230613335353963362d653765312d356533312d623831392d313331373962333230306236222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30303a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303033222c20226e6f64655f6e616d65223a20226f6c642d32222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30303a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a207b22736368656d615f76657273696f6e223a20312c2022746f6f6c223a207b226e616d65223a2022746c6262656e6368222c202276657273696f6e223a2022302e312e30227d2c2022636f6d6d616e64223a202272756e222c202270726f66696c65223a2022717569636b222c202273656564223a20312c2022737461727465645f6174223a2022323032362d31312d32305431323a30303a30305a222c20226475726174696f6e5f7365636f6e6473223a2034312e322c2022657869745f737461747573223a20302c202273656374696f6e73223a205b7b226e616d65223a202267656f6d65747279222c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226475726174696f6e5f7365636f6e6473223a20332e317d2c207b226e616d65223a20226c6174656e6379222c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226475726174696f6e5f7365636f6e6473223a2033302e307d5d2c2022656e7669726f6e6d656e74223a207b227a756c75223a20312c2022616c706861223a207b226b657074223a2022696e206f72646572227d7d2c202267656f6d65747279223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226c6576656c73223a205b7b226c6576656c223a20312c20226b696e64223a202264617461222c2022706167655f6279746573223a20343039362c2022656e7472696573223a2039362c2022656e74726965735f6d696e223a2039352c2022656e74726965735f6d6178223a2039372c202277617973223a202266756c6c222c2022736f75726365223a20226d65617375726564222c2022636f6e666964656e6365223a202268696768222c20226e6f7465223a206e756c6c7d5d2c20226566666563746976655f6772616e756c65223a205b7b226261636b696e67223a2022544850222c20226261636b696e675f6b696e64223a2022746870222c2022706167655f6279746573223a20323039373135322c20226772616e756c655f6279746573223a20323039373135322c2022737461747573223a20226f6b227d2c207b226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226772616e756c655f6279746573223a20343039362c2022737461747573223a2022667261637475726564227d5d2c202270656e616c7479223a205b7b226c6576656c223a20226c325f686974222c2022706167655f6279746573223a20343039362c20226e73223a20322e33332c20226e735f6d696e223a20322e322c20226e735f6d6178223a20322e352c20226379636c6573223a20372e307d5d2c2022636c6f636b223a207b22636f72655f687a223a20333030303030303030302e302c20226c315f6869745f6e73223a20312e36372c20226c315f6869745f6379636c6573223a20352e307d2c202264697361677265656d656e7473223a205b7b226c6576656c223a20312c2022706167655f6279746573223a20343039362c20226669656c64223a2022656e7472696573222c202276616c756573223a207b226370756964223a2036342c20226d65617375726564223a2039367d2c202274657874223a20222e227d5d2c2022637572766573223a205b7b226e616d65223a202267656f6d6574727920616c696173656420344b222c2022785f6e616d65223a20227061676573222c20226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226c61796f7574223a2022616c6961736564222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d5d7d2c20226c6174656e6379223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022637572766573223a205b7b226e616d65223a20226c6174656e6379206c696e655f7065725f7061676520344b222c2022785f6e616d65223a2022666f6f747072696e745f6279746573222c20226261636b696e67223a2022344b222c20226261636b696e675f6b696e64223a202262617365222c2022706167655f6279746573223a20343039362c20226c61796f7574223a20226c696e655f7065725f70616765222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d2c207b226e616d65223a20226c6174656e6379206c696e655f7065725f7061676520324d222c2022785f6e616d65223a2022666f6f747072696e745f6279746573222c20226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226c61796f7574223a20226c696e655f7065725f70616765222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d5d2c20227061697265645f64656c746173223a205b7b226261636b696e67223a2022324d222c20226c61796f7574223a20226c696e655f7065725f70616765222c202278223a20313037333734313832342c202264656c74615f6e73223a202d33352e312c2022636939355f6c6f775f6e73223a202d33382c2022636939355f686967685f6e73223a202d33317d5d2c20227072657373757265223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022726567696f6e5f6279746573223a203533363837303931322c2022726567696f6e5f6261636b696e67223a2022324d222c20226c696e65735f7065725f70616765223a2031362c2022706f696e7473223a205b7b226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c2022666f6f747072696e745f6279746573223a203533363837303931322c20226c696e65735f6265747765656e223a2036342c2022776169745f6e73223a20302c2022706572696f645f6e73223a203935302e302c2022626173655f6e735f703530223a203336342e302c20226e735f703530223a203235372e302c202264656c74615f6e73223a202d3130372e302c2022636939355f6c6f775f6e73223a202d3132302e302c2022636939355f686967685f6e73223a202d39342e302c20227061697273223a20367d5d7d7d2c202276656e646f725f657874656e73696f6e223a207b226b657074223a20747275657d7d2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '2026-11-22 15:51:03.078381+00', '90e4d83c-143b-5cc7-bfd7-6d34274dd94d', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202239306534643833632d313433622d356363372d626664372d366433343237346464393464222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30313a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303033222c20226e6f64655f6e616d65223a20226f6c642d32222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30313a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a206e756c6c2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '2026-11-22 15:51:03.145726+00', '937b9eb7-e989-5d4e-b1bb-d7eaaf4e24d1', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202239333762396562372d653938392d356434652d623162622d643765616166346532346431222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30323a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303033222c20226e6f64655f6e616d65223a20226f6c642d32222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30323a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a206e756c6c2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '2026-11-22 15:51:06.518063+00', '6ec0e62c-2eec-528c-8aba-e53c96e54686', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202236656330653632632d326565632d353238632d386162612d653533633936653534363836222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30303a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303034222c20226e6f64655f6e616d65223a20226f6c642d33222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30303a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a207b22736368656d615f76657273696f6e223a20312c2022746f6f6c223a207b226e616d65223a2022746c6262656e6368222c202276657273696f6e223a2022302e312e30227d2c2022636f6d6d616e64223a202272756e222c202270726f66696c65223a2022717569636b222c202273656564223a20312c2022737461727465645f6174223a2022323032362d31312d32305431323a30303a30305a222c20226475726174696f6e5f7365636f6e6473223a2034312e322c2022657869745f737461747573223a20302c202273656374696f6e73223a205b7b226e616d65223a202267656f6d65747279222c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226475726174696f6e5f7365636f6e6473223a20332e317d2c207b226e616d65223a20226c6174656e6379222c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226475726174696f6e5f7365636f6e6473223a2033302e307d5d2c2022656e7669726f6e6d656e74223a207b227a756c75223a20312c2022616c706861223a207b226b657074223a2022696e206f72646572227d7d2c202267656f6d65747279223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c20226c6576656c73223a205b7b226c6576656c223a20312c20226b696e64223a202264617461222c2022706167655f6279746573223a20343039362c2022656e7472696573223a2039362c2022656e74726965735f6d696e223a2039352c2022656e74726965735f6d6178223a2039372c202277617973223a202266756c6c222c2022736f75726365223a20226d65617375726564222c2022636f6e666964656e6365223a202268696768222c20226e6f7465223a206e756c6c7d5d2c20226566666563746976655f6772616e756c65223a205b7b226261636b696e67223a2022544850222c20226261636b696e675f6b696e64223a2022746870222c2022706167655f6279746573223a20323039373135322c20226772616e756c655f6279746573223a20323039373135322c2022737461747573223a20226f6b227d2c207b226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226772616e756c655f6279746573223a20343039362c2022737461747573223a2022667261637475726564227d5d2c202270656e616c7479223a205b7b226c6576656c223a20226c325f686974222c2022706167655f6279746573223a20343039362c20226e73223a20322e33332c20226e735f6d696e223a20322e322c20226e735f6d6178223a20322e352c20226379636c6573223a20372e307d5d2c2022636c6f636b223a207b22636f72655f687a223a20333030303030303030302e302c20226c315f6869745f6e73223a20312e36372c20226c315f6869745f6379636c6573223a20352e307d2c202264697361677265656d656e7473223a205b7b226c6576656c223a20312c2022706167655f6279746573223a20343039362c20226669656c64223a2022656e7472696573222c202276616c756573223a207b226370756964223a2036342c20226d65617375726564223a2039367d2c202274657874223a20222e227d5d2c2022637572766573223a205b7b226e616d65223a202267656f6d6574727920616c696173656420344b222c2022785f6e616d65223a20227061676573222c20226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226c61796f7574223a2022616c6961736564222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d5d7d2c20226c6174656e6379223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022637572766573223a205b7b226e616d65223a20226c6174656e6379206c696e655f7065725f7061676520344b222c2022785f6e616d65223a2022666f6f747072696e745f6279746573222c20226261636b696e67223a2022344b222c20226261636b696e675f6b696e64223a202262617365222c2022706167655f6279746573223a20343039362c20226c61796f7574223a20226c696e655f7065725f70616765222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d2c207b226e616d65223a20226c6174656e6379206c696e655f7065725f7061676520324d222c2022785f6e616d65223a2022666f6f747072696e745f6279746573222c20226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c20226c61796f7574223a20226c696e655f7065725f70616765222c20226772616e7465645f6672616374696f6e223a20312e302c2022737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022706f696e7473223a205b7b2278223a2036353533362c20226e735f6d696e223a20312e352c20226e735f703130223a20312e362c20226e735f703530223a20312e372c20226e735f703930223a20312e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a203236323134342c20226e735f6d696e223a20322e352c20226e735f703130223a20322e362c20226e735f703530223a20322e372c20226e735f703930223a20322e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d2c207b2278223a20313034383537362c20226e735f6d696e223a20332e352c20226e735f703130223a20332e362c20226e735f703530223a20332e372c20226e735f703930223a20332e392c20226e735f6d6164223a206e756c6c2c202262617463686573223a2032352c202264726f70706564223a20317d5d7d5d2c20227061697265645f64656c746173223a205b7b226261636b696e67223a2022324d222c20226c61796f7574223a20226c696e655f7065725f70616765222c202278223a20313037333734313832342c202264656c74615f6e73223a202d33352e312c2022636939355f6c6f775f6e73223a202d33382c2022636939355f686967685f6e73223a202d33317d5d2c20227072657373757265223a207b22737461747573223a20226f6b222c2022726561736f6e223a206e756c6c2c2022726567696f6e5f6279746573223a203533363837303931322c2022726567696f6e5f6261636b696e67223a2022324d222c20226c696e65735f7065725f70616765223a2031362c2022706f696e7473223a205b7b226261636b696e67223a2022324d222c20226261636b696e675f6b696e64223a202268756765746c62222c2022706167655f6279746573223a20323039373135322c2022666f6f747072696e745f6279746573223a203533363837303931322c20226c696e65735f6265747765656e223a2036342c2022776169745f6e73223a20302c2022706572696f645f6e73223a203935302e302c2022626173655f6e735f703530223a203336342e302c20226e735f703530223a203235372e302c202264656c74615f6e73223a202d3130372e302c2022636939355f6c6f775f6e73223a202d3132302e302c2022636939355f686967685f6e73223a202d39342e302c20227061697273223a20367d5d7d7d2c202276656e646f725f657874656e73696f6e223a207b226b657074223a20747275657d7d2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '2026-11-22 15:51:06.5901+00', '95f36815-b215-57d7-bde4-8d3c3155fb74', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202239356633363831352d623231352d353764372d626465342d386433633331353566623734222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30313a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303034222c20226e6f64655f6e616d65223a20226f6c642d33222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30313a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a206e756c6c2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '2026-11-22 15:51:06.675902+00', '390d5930-ce03-5b3e-b6ce-30c9f9d05a30', '\x7b22736368656d615f76657273696f6e223a20312c20227265706f72745f6964223a202233393064353933302d636530332d356233652d623663652d333063396639643035613330222c20226167656e745f76657273696f6e223a2022302e312e30222c2022637265617465645f6174223a2022323032362d31312d32305431303a30323a30305a222c20226d616368696e655f6964223a20223030303030303030303030303030303030303030303030303030303030303034222c20226e6f64655f6e616d65223a20226f6c642d33222c202273796e746865746963223a20747275652c2022696e76656e746f7279223a207b22617263686974656374757265223a20227838365f3634222c20226b65726e656c5f72656c65617365223a2022362e31322e30222c20226b65726e656c5f636f6d6d616e645f6c696e65223a2022726f207175696574222c2022637075223a207b2276656e646f72223a202241757468656e746963414d44222c202266616d696c79223a2032362c20226d6f64656c223a20322c20227374657070696e67223a20312c20226272616e64223a2022414d442045505943222c20226f6e6c696e65223a2031367d2c202268797065727669736f72223a20224b564d222c20227669727475616c69736564223a20747275652c2022626173655f706167655f6279746573223a20343039362c2022687567655f706167655f73697a65735f6279746573223a205b323039373135322c20313037333734313832345d2c202264656661756c745f687567655f706167655f6279746573223a20323039373135322c2022746870223a207b22656e61626c6564223a20226d616476697365222c2022646566726167223a20226d616476697365222c202273686d656d5f656e61626c6564223a20226e65766572227d2c202268766f5f656e61626c6564223a2066616c73652c20226367726f75705f76657273696f6e223a20322c20226e756d615f6e6f646573223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c202263707573223a2022302d3135227d5d7d2c202273616d706c65223a207b2274616b656e5f6174223a2022323032362d31312d32305431303a30323a30305a222c20226d656d6f7279223a207b226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c20226d656d5f617661696c61626c655f6279746573223a2035333638373039313230302c20226361636865645f6279746573223a20353336383730393132302c2022736c61625f6279746573223a20313037333734313832342c2022735f756e7265636c61696d5f6279746573223a203533363837303931322c20226b65726e656c5f737461636b5f6279746573223a2036373130383836342c2022706167655f7461626c65735f6279746573223a203133343231373732382c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c2c202268756765746c625f6279746573223a20323134373438333634387d2c2022706f6f6c73223a205b7b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022737572706c75735f687567657061676573223a20307d2c207b226e756d615f6e6f6465223a20302c2022706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c2022676c6f62616c5f706f6f6c73223a205b7b22706167655f6279746573223a20323039373135322c20226e725f687567657061676573223a20313032342c2022667265655f687567657061676573223a203531322c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20302c20226e725f6f766572636f6d6d69745f687567657061676573223a20307d2c207b22706167655f6279746573223a20313037333734313832342c20226e725f687567657061676573223a20302c2022667265655f687567657061676573223a20302c2022726573765f687567657061676573223a20302c2022737572706c75735f687567657061676573223a20307d5d2c20226e756d61223a205b7b226964223a20302c20226d656d5f746f74616c5f6279746573223a2036383731393437363733362c20226d656d5f667265655f6279746573223a2034323934393637323936302c2022616e6f6e5f687567655f70616765735f6279746573223a206e756c6c7d5d2c202270726f636573736573223a205b7b22706964223a2031302c202273746172745f74696d655f7469636b73223a20352c20226e616d65223a2022736d616c6c222c20227273735f6279746573223a20313034383537362c2022766d5f7074655f6279746573223a20343039367d2c207b22706964223a2031312c202273746172745f74696d655f7469636b73223a20362c20226e616d65223a2022706f737467726573222c20227273735f6279746573223a20313037333734313832342c2022766d5f7074655f6279746573223a20383139327d5d7d2c202272756e223a206e756c6c2c2022636f6c6c6563746f7273223a205b7b226e616d65223a20226d656d696e666f222c2022737461747573223a20226f6b222c20226475726174696f6e5f7365636f6e6473223a20302e3030312c2022726561736f6e223a206e756c6c7d5d7d');


--
-- Data for Name: report_documents_20261123; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: report_documents_20261124; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: report_documents_20261125; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: report_documents_default; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: reports; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.reports VALUES
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '67c3ce8d-e2cb-5ca0-a0b9-a4f6213a7695', '2026-11-22 15:50:56.043562+00', '\x71aad17cd12c8d65b19e119e72717ae473754e09ae965274a36d4f01dc4ee5d4', '40a1bafb-084c-40c0-a2aa-f64a7260d973'),
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', 'aac1bdf1-fbdf-5e4e-9b72-f35080b168eb', '2026-11-22 15:50:56.169745+00', '\x217fe98548be5fb0f5969c752ec22250a977b69e13d2dc78c9612d3a738cef0d', NULL),
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '79312c29-369d-58e9-a826-30bb3eab773f', '2026-11-22 15:50:56.213976+00', '\xec9c288f2ce0a0f270220cfe40e81f7a5e6fd50149772a9d8bba495e77df9c74', NULL),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', '0305284b-1463-51f8-9bc4-504cb29b9d24', '2026-11-22 15:50:59.137721+00', '\xc87325f8db5d7887b7f4751fbacd3018efa48c4910cdbd986f2dae0fe60d517a', 'd5190ab6-2716-4756-8029-31db6f8a5133'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', 'c6eccf63-6925-5ab4-b34c-f35535f2d0fa', '2026-11-22 15:50:59.192359+00', '\x843e939ce3eb58a7ec2eff6a1ba3abc0434a939db0a3545bfeb3d5f364b9502a', NULL),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', '27e95683-7b2b-5ee0-aa8e-30deab6bd31a', '2026-11-22 15:50:59.224508+00', '\xe3015296bf4e938e0cf9e204d3651d5d7097afe3b0759e145f394b8fc73b55b8', NULL),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '0a3559c6-e7e1-5e31-b819-13179b3200b6', '2026-11-22 15:51:02.986446+00', '\x3b5532ed41b7c55321fa3e084e176471f5a5cf53c91c68292b0fd33fc38f6fd0', 'ab120070-4ab9-4f93-aa4b-2ceb4d7d1e5d'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '90e4d83c-143b-5cc7-bfd7-6d34274dd94d', '2026-11-22 15:51:03.078381+00', '\x2e8a2106392dd1bd5c9b638b11c7a5ec2a6d2d7665263f7f89dd479c0b54135e', NULL),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '937b9eb7-e989-5d4e-b1bb-d7eaaf4e24d1', '2026-11-22 15:51:03.145726+00', '\xbd9588113aeec1c44feba80fbf89af02b8de4cd2e7fd2f47ef0667e0dfb16fbf', NULL),
	('5c78457d-5107-49e2-abc4-18efe330a008', '6ec0e62c-2eec-528c-8aba-e53c96e54686', '2026-11-22 15:51:06.518063+00', '\xd659b565a2aac8f3b7cb1fd929f83fca0790d951bbb761583e592b4bc33f70e7', '7d39a36e-4bba-471c-b6d4-f6c42f41119e'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '95f36815-b215-57d7-bde4-8d3c3155fb74', '2026-11-22 15:51:06.5901+00', '\xed13322397a48876aa3e1e3668a38f2ada60ac720a19dedd7e97c531ac17c4a0', NULL),
	('5c78457d-5107-49e2-abc4-18efe330a008', '390d5930-ce03-5b3e-b6ce-30c9f9d05a30', '2026-11-22 15:51:06.675902+00', '\x82f3654e19a882fb770ec84a4de8c82528a3dca49768ead9cf73e0c420acc2bb', NULL);


--
-- Data for Name: runs; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.runs VALUES
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '40a1bafb-084c-40c0-a2aa-f64a7260d973', '2026-11-20 12:00:00+00', '2026-11-22 15:50:56.064686+00', 'run', 'quick', '0.1.0', 41.2, '[{"name": "geometry", "reason": null, "status": "ok", "duration_seconds": 3.1}, {"name": "latency", "reason": null, "status": "ok", "duration_seconds": 30.0}]', '{"schema_version": 1, "tool": {"name": "tlbbench", "version": "0.1.0"}, "command": "run", "profile": "quick", "seed": 1, "started_at": "2026-11-20T12:00:00Z", "duration_seconds": 41.2, "exit_status": 0, "sections": [{"name": "geometry", "status": "ok", "reason": null, "duration_seconds": 3.1}, {"name": "latency", "status": "ok", "reason": null, "duration_seconds": 30.0}], "environment": {"zulu": 1, "alpha": {"kept": "in order"}}, "geometry": {"status": "ok", "reason": null, "levels": [{"level": 1, "kind": "data", "page_bytes": 4096, "entries": 96, "entries_min": 95, "entries_max": 97, "ways": "full", "source": "measured", "confidence": "high", "note": null}], "effective_granule": [{"backing": "THP", "backing_kind": "thp", "page_bytes": 2097152, "granule_bytes": 2097152, "status": "ok"}, {"backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "granule_bytes": 4096, "status": "fractured"}], "penalty": [{"level": "l2_hit", "page_bytes": 4096, "ns": 2.33, "ns_min": 2.2, "ns_max": 2.5, "cycles": 7.0}], "clock": {"core_hz": 3000000000.0, "l1_hit_ns": 1.67, "l1_hit_cycles": 5.0}, "disagreements": [{"level": 1, "page_bytes": 4096, "field": "entries", "values": {"cpuid": 64, "measured": 96}, "text": "."}], "curves": [{"name": "geometry aliased 4K", "x_name": "pages", "backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "layout": "aliased", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}]}, "latency": {"status": "ok", "reason": null, "curves": [{"name": "latency line_per_page 4K", "x_name": "footprint_bytes", "backing": "4K", "backing_kind": "base", "page_bytes": 4096, "layout": "line_per_page", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}, {"name": "latency line_per_page 2M", "x_name": "footprint_bytes", "backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "layout": "line_per_page", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}], "paired_deltas": [{"backing": "2M", "layout": "line_per_page", "x": 1073741824, "delta_ns": -35.1, "ci95_low_ns": -38, "ci95_high_ns": -31}], "pressure": {"status": "ok", "reason": null, "region_bytes": 536870912, "region_backing": "2M", "lines_per_page": 16, "points": [{"backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "footprint_bytes": 536870912, "lines_between": 64, "wait_ns": 0, "period_ns": 950.0, "base_ns_p50": 364.0, "ns_p50": 257.0, "delta_ns": -107.0, "ci95_low_ns": -120.0, "ci95_high_ns": -94.0, "pairs": 6}]}}, "vendor_extension": {"kept": true}}'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', 'd5190ab6-2716-4756-8029-31db6f8a5133', '2026-11-20 12:00:00+00', '2026-11-22 15:50:59.148392+00', 'run', 'quick', '0.1.0', 41.2, '[{"name": "geometry", "reason": null, "status": "ok", "duration_seconds": 3.1}, {"name": "latency", "reason": null, "status": "ok", "duration_seconds": 30.0}]', '{"schema_version": 1, "tool": {"name": "tlbbench", "version": "0.1.0"}, "command": "run", "profile": "quick", "seed": 1, "started_at": "2026-11-20T12:00:00Z", "duration_seconds": 41.2, "exit_status": 0, "sections": [{"name": "geometry", "status": "ok", "reason": null, "duration_seconds": 3.1}, {"name": "latency", "status": "ok", "reason": null, "duration_seconds": 30.0}], "environment": {"zulu": 1, "alpha": {"kept": "in order"}}, "geometry": {"status": "ok", "reason": null, "levels": [{"level": 1, "kind": "data", "page_bytes": 4096, "entries": 96, "entries_min": 95, "entries_max": 97, "ways": "full", "source": "measured", "confidence": "high", "note": null}], "effective_granule": [{"backing": "THP", "backing_kind": "thp", "page_bytes": 2097152, "granule_bytes": 2097152, "status": "ok"}, {"backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "granule_bytes": 4096, "status": "fractured"}], "penalty": [{"level": "l2_hit", "page_bytes": 4096, "ns": 2.33, "ns_min": 2.2, "ns_max": 2.5, "cycles": 7.0}], "clock": {"core_hz": 3000000000.0, "l1_hit_ns": 1.67, "l1_hit_cycles": 5.0}, "disagreements": [{"level": 1, "page_bytes": 4096, "field": "entries", "values": {"cpuid": 64, "measured": 96}, "text": "."}], "curves": [{"name": "geometry aliased 4K", "x_name": "pages", "backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "layout": "aliased", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}]}, "latency": {"status": "ok", "reason": null, "curves": [{"name": "latency line_per_page 4K", "x_name": "footprint_bytes", "backing": "4K", "backing_kind": "base", "page_bytes": 4096, "layout": "line_per_page", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}, {"name": "latency line_per_page 2M", "x_name": "footprint_bytes", "backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "layout": "line_per_page", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}], "paired_deltas": [{"backing": "2M", "layout": "line_per_page", "x": 1073741824, "delta_ns": -35.1, "ci95_low_ns": -38, "ci95_high_ns": -31}], "pressure": {"status": "ok", "reason": null, "region_bytes": 536870912, "region_backing": "2M", "lines_per_page": 16, "points": [{"backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "footprint_bytes": 536870912, "lines_between": 64, "wait_ns": 0, "period_ns": 950.0, "base_ns_p50": 364.0, "ns_p50": 257.0, "delta_ns": -107.0, "ci95_low_ns": -120.0, "ci95_high_ns": -94.0, "pairs": 6}]}}, "vendor_extension": {"kept": true}}'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', 'ab120070-4ab9-4f93-aa4b-2ceb4d7d1e5d', '2026-11-20 12:00:00+00', '2026-11-22 15:51:03.019095+00', 'run', 'quick', '0.1.0', 41.2, '[{"name": "geometry", "reason": null, "status": "ok", "duration_seconds": 3.1}, {"name": "latency", "reason": null, "status": "ok", "duration_seconds": 30.0}]', '{"schema_version": 1, "tool": {"name": "tlbbench", "version": "0.1.0"}, "command": "run", "profile": "quick", "seed": 1, "started_at": "2026-11-20T12:00:00Z", "duration_seconds": 41.2, "exit_status": 0, "sections": [{"name": "geometry", "status": "ok", "reason": null, "duration_seconds": 3.1}, {"name": "latency", "status": "ok", "reason": null, "duration_seconds": 30.0}], "environment": {"zulu": 1, "alpha": {"kept": "in order"}}, "geometry": {"status": "ok", "reason": null, "levels": [{"level": 1, "kind": "data", "page_bytes": 4096, "entries": 96, "entries_min": 95, "entries_max": 97, "ways": "full", "source": "measured", "confidence": "high", "note": null}], "effective_granule": [{"backing": "THP", "backing_kind": "thp", "page_bytes": 2097152, "granule_bytes": 2097152, "status": "ok"}, {"backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "granule_bytes": 4096, "status": "fractured"}], "penalty": [{"level": "l2_hit", "page_bytes": 4096, "ns": 2.33, "ns_min": 2.2, "ns_max": 2.5, "cycles": 7.0}], "clock": {"core_hz": 3000000000.0, "l1_hit_ns": 1.67, "l1_hit_cycles": 5.0}, "disagreements": [{"level": 1, "page_bytes": 4096, "field": "entries", "values": {"cpuid": 64, "measured": 96}, "text": "."}], "curves": [{"name": "geometry aliased 4K", "x_name": "pages", "backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "layout": "aliased", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}]}, "latency": {"status": "ok", "reason": null, "curves": [{"name": "latency line_per_page 4K", "x_name": "footprint_bytes", "backing": "4K", "backing_kind": "base", "page_bytes": 4096, "layout": "line_per_page", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}, {"name": "latency line_per_page 2M", "x_name": "footprint_bytes", "backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "layout": "line_per_page", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}], "paired_deltas": [{"backing": "2M", "layout": "line_per_page", "x": 1073741824, "delta_ns": -35.1, "ci95_low_ns": -38, "ci95_high_ns": -31}], "pressure": {"status": "ok", "reason": null, "region_bytes": 536870912, "region_backing": "2M", "lines_per_page": 16, "points": [{"backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "footprint_bytes": 536870912, "lines_between": 64, "wait_ns": 0, "period_ns": 950.0, "base_ns_p50": 364.0, "ns_p50": 257.0, "delta_ns": -107.0, "ci95_low_ns": -120.0, "ci95_high_ns": -94.0, "pairs": 6}]}}, "vendor_extension": {"kept": true}}'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '7d39a36e-4bba-471c-b6d4-f6c42f41119e', '2026-11-20 12:00:00+00', '2026-11-22 15:51:06.542519+00', 'run', 'quick', '0.1.0', 41.2, '[{"name": "geometry", "reason": null, "status": "ok", "duration_seconds": 3.1}, {"name": "latency", "reason": null, "status": "ok", "duration_seconds": 30.0}]', '{"schema_version": 1, "tool": {"name": "tlbbench", "version": "0.1.0"}, "command": "run", "profile": "quick", "seed": 1, "started_at": "2026-11-20T12:00:00Z", "duration_seconds": 41.2, "exit_status": 0, "sections": [{"name": "geometry", "status": "ok", "reason": null, "duration_seconds": 3.1}, {"name": "latency", "status": "ok", "reason": null, "duration_seconds": 30.0}], "environment": {"zulu": 1, "alpha": {"kept": "in order"}}, "geometry": {"status": "ok", "reason": null, "levels": [{"level": 1, "kind": "data", "page_bytes": 4096, "entries": 96, "entries_min": 95, "entries_max": 97, "ways": "full", "source": "measured", "confidence": "high", "note": null}], "effective_granule": [{"backing": "THP", "backing_kind": "thp", "page_bytes": 2097152, "granule_bytes": 2097152, "status": "ok"}, {"backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "granule_bytes": 4096, "status": "fractured"}], "penalty": [{"level": "l2_hit", "page_bytes": 4096, "ns": 2.33, "ns_min": 2.2, "ns_max": 2.5, "cycles": 7.0}], "clock": {"core_hz": 3000000000.0, "l1_hit_ns": 1.67, "l1_hit_cycles": 5.0}, "disagreements": [{"level": 1, "page_bytes": 4096, "field": "entries", "values": {"cpuid": 64, "measured": 96}, "text": "."}], "curves": [{"name": "geometry aliased 4K", "x_name": "pages", "backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "layout": "aliased", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}]}, "latency": {"status": "ok", "reason": null, "curves": [{"name": "latency line_per_page 4K", "x_name": "footprint_bytes", "backing": "4K", "backing_kind": "base", "page_bytes": 4096, "layout": "line_per_page", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}, {"name": "latency line_per_page 2M", "x_name": "footprint_bytes", "backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "layout": "line_per_page", "granted_fraction": 1.0, "status": "ok", "reason": null, "points": [{"x": 65536, "ns_min": 1.5, "ns_p10": 1.6, "ns_p50": 1.7, "ns_p90": 1.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 262144, "ns_min": 2.5, "ns_p10": 2.6, "ns_p50": 2.7, "ns_p90": 2.9, "ns_mad": null, "batches": 25, "dropped": 1}, {"x": 1048576, "ns_min": 3.5, "ns_p10": 3.6, "ns_p50": 3.7, "ns_p90": 3.9, "ns_mad": null, "batches": 25, "dropped": 1}]}], "paired_deltas": [{"backing": "2M", "layout": "line_per_page", "x": 1073741824, "delta_ns": -35.1, "ci95_low_ns": -38, "ci95_high_ns": -31}], "pressure": {"status": "ok", "reason": null, "region_bytes": 536870912, "region_backing": "2M", "lines_per_page": 16, "points": [{"backing": "2M", "backing_kind": "hugetlb", "page_bytes": 2097152, "footprint_bytes": 536870912, "lines_between": 64, "wait_ns": 0, "period_ns": 950.0, "base_ns_p50": 364.0, "ns_p50": 257.0, "delta_ns": -107.0, "ci95_low_ns": -120.0, "ci95_high_ns": -94.0, "pairs": 6}]}}, "vendor_extension": {"kept": true}}');


--
-- Data for Name: sample_hours; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: samples_20261121; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: samples_20261122; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: samples_20261123; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: samples_20261124; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: samples_20261125; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: samples_default; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.samples_default VALUES
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '2026-11-20 10:00:00+00', '67c3ce8d-e2cb-5ca0-a0b9-a4f6213a7695', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '2026-11-20 10:01:00+00', 'aac1bdf1-fbdf-5e4e-9b72-f35080b168eb', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('f421e8ac-0cac-4e37-92a2-2a2ef8d3897e', '2026-11-20 10:02:00+00', '79312c29-369d-58e9-a826-30bb3eab773f', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', '2026-11-20 10:00:00+00', '0305284b-1463-51f8-9bc4-504cb29b9d24', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', '2026-11-20 10:01:00+00', 'c6eccf63-6925-5ab4-b34c-f35535f2d0fa', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('6cb61f72-5340-46d4-8ff8-9f38b7c2e22a', '2026-11-20 10:02:00+00', '27e95683-7b2b-5ee0-aa8e-30deab6bd31a', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '2026-11-20 10:00:00+00', '0a3559c6-e7e1-5e31-b819-13179b3200b6', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '2026-11-20 10:01:00+00', '90e4d83c-143b-5cc7-bfd7-6d34274dd94d', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('53eb0811-78ed-4734-b22b-9683d5825f9b', '2026-11-20 10:02:00+00', '937b9eb7-e989-5d4e-b1bb-d7eaaf4e24d1', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '2026-11-20 10:00:00+00', '6ec0e62c-2eec-528c-8aba-e53c96e54686', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '2026-11-20 10:01:00+00', '95f36815-b215-57d7-bde4-8d3c3155fb74', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]'),
	('5c78457d-5107-49e2-abc4-18efe330a008', '2026-11-20 10:02:00+00', '390d5930-ce03-5b3e-b6ce-30c9f9d05a30', 68719476736, 53687091200, 134217728, NULL, 2147483648, '{"slab_bytes": 1073741824, "shmem_bytes": null, "cached_bytes": 5368709120, "hugetlb_bytes": 2147483648, "mem_free_bytes": 42949672960, "mem_total_bytes": 68719476736, "swap_free_bytes": null, "swap_total_bytes": null, "page_tables_bytes": 134217728, "s_unreclaim_bytes": 536870912, "committed_as_bytes": null, "kernel_stack_bytes": 67108864, "direct_map_1g_bytes": null, "direct_map_2m_bytes": null, "direct_map_4k_bytes": null, "mem_available_bytes": 53687091200, "anon_huge_pages_bytes": null}', '[{"numa_node": 0, "page_bytes": 2097152, "nr_hugepages": 1024, "free_hugepages": 512, "resv_hugepages": null, "surplus_hugepages": 0}, {"numa_node": 0, "page_bytes": 1073741824, "nr_hugepages": 0, "free_hugepages": 0, "resv_hugepages": null, "surplus_hugepages": 0}]');


--
-- Data for Name: scenarios; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.scenarios VALUES
	('ee55792e-7265-4018-b3b8-fb1fffd62018', 'orders database', NULL, 1, '{"schema_version": 1, "node": {"name": "db-1", "arch": "x86_64", "memory": "256GiB", "cpus": 64, "kernel_used": "1200MiB", "thp": "always", "hvo": false, "hardware": {"cpu": {"vendor": "GenuineIntel", "family": 6, "model": 143}, "virtualised": false}}, "reservations": {"system_reserved": "2GiB"}, "tenants": [{"name": "backup", "kind": "service", "request": "2GiB", "limit": "6GiB"}], "databases": [{"name": "orders", "engine": "postgresql", "version": "17", "settings": {"shared_buffers": "64GB", "max_connections": 500, "effective_cache_size": "160GB", "work_mem": "16MB", "huge_pages": "try"}, "workload": {"working_set": "90GiB", "zipf_s": 0.9, "active_connections": 48, "operation": "key_lookup", "operations_per_second_per_busy_core": 21000}}], "policy": {"slack": "1%", "risk": "1%", "reserve_at": "boot"}}', '2026-11-22 15:51:06.77706+00', '2026-11-22 15:51:06.77706+00');


--
-- Data for Name: tokens; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.tokens VALUES
	('c7def778-df3c-40be-bb95-c08b28209325', 'old admin', 'admin', '\xc13c968027ac707e436ff5bd67049ed9086e885b1a02067e4887c470ef23db30', NULL, '2026-11-22 15:50:47.849702+00', NULL, NULL, NULL),
	('11d4e2e1-18a1-4727-9dde-e7ebfc2aa3d2', 'old agent 0', 'agent', '\x400afae4c9851e62db81dcf8547d4537ea1da808c1693f4dcdbf81c39156f99b', '00000000000000000000000000000001', '2026-11-22 15:50:55.157403+00', NULL, NULL, '2026-11-22 15:50:56.214201+00'),
	('ff4e0176-6ba8-464c-8493-8c90bb1052be', 'old agent 1', 'agent', '\x9b12b9fd244585b46938d02c78aee5eb849c35102d0f5e49a5314ae021072f83', '00000000000000000000000000000002', '2026-11-22 15:50:58.451472+00', NULL, NULL, '2026-11-22 15:50:59.224663+00'),
	('e5831b4c-746b-4caa-a765-9319e244d392', 'old agent 2', 'agent', '\x5fab704b003627f7413ac8f5293eee7f92aa654144bf876e884b1aa0681035de', '00000000000000000000000000000003', '2026-11-22 15:51:01.965468+00', NULL, NULL, '2026-11-22 15:51:03.145954+00'),
	('6c4f8305-c8f2-4b5c-9a32-1c6b80b15b3b', 'old agent 3', 'agent', '\xe6acc23a14ec529ecd5fc4cbfa43a8a231c8effe5feda2bb1537cb2aa4371517', '00000000000000000000000000000004', '2026-11-22 15:51:05.7849+00', NULL, NULL, '2026-11-22 15:51:06.6761+00');


--
-- Name: alembic_version alembic_version_pkc; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);


--
-- Name: browser_sessions pk_browser_sessions; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT pk_browser_sessions PRIMARY KEY (id);


--
-- Name: curves pk_curves; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.curves
    ADD CONSTRAINT pk_curves PRIMARY KEY (node_id, run_id, ordinal);


--
-- Name: nodes pk_nodes; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT pk_nodes PRIMARY KEY (id);


--
-- Name: plans pk_plans; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.plans
    ADD CONSTRAINT pk_plans PRIMARY KEY (id);


--
-- Name: report_documents pk_report_documents; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents
    ADD CONSTRAINT pk_report_documents PRIMARY KEY (node_id, received_at, report_id);


--
-- Name: reports pk_reports; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.reports
    ADD CONSTRAINT pk_reports PRIMARY KEY (node_id, report_id);


--
-- Name: runs pk_runs; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT pk_runs PRIMARY KEY (node_id, id);


--
-- Name: sample_hours pk_sample_hours; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sample_hours
    ADD CONSTRAINT pk_sample_hours PRIMARY KEY (node_id, hour_at);


--
-- Name: samples pk_samples; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples
    ADD CONSTRAINT pk_samples PRIMARY KEY (node_id, taken_at, report_id);


--
-- Name: scenarios pk_scenarios; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.scenarios
    ADD CONSTRAINT pk_scenarios PRIMARY KEY (id);


--
-- Name: tokens pk_tokens; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT pk_tokens PRIMARY KEY (id);


--
-- Name: report_documents_20261121 report_documents_20261121_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents_20261121
    ADD CONSTRAINT report_documents_20261121_pkey PRIMARY KEY (node_id, received_at, report_id);


--
-- Name: report_documents_20261122 report_documents_20261122_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents_20261122
    ADD CONSTRAINT report_documents_20261122_pkey PRIMARY KEY (node_id, received_at, report_id);


--
-- Name: report_documents_20261123 report_documents_20261123_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents_20261123
    ADD CONSTRAINT report_documents_20261123_pkey PRIMARY KEY (node_id, received_at, report_id);


--
-- Name: report_documents_20261124 report_documents_20261124_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents_20261124
    ADD CONSTRAINT report_documents_20261124_pkey PRIMARY KEY (node_id, received_at, report_id);


--
-- Name: report_documents_20261125 report_documents_20261125_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents_20261125
    ADD CONSTRAINT report_documents_20261125_pkey PRIMARY KEY (node_id, received_at, report_id);


--
-- Name: report_documents_default report_documents_default_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report_documents_default
    ADD CONSTRAINT report_documents_default_pkey PRIMARY KEY (node_id, received_at, report_id);


--
-- Name: samples_20261121 samples_20261121_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples_20261121
    ADD CONSTRAINT samples_20261121_pkey PRIMARY KEY (node_id, taken_at, report_id);


--
-- Name: samples_20261122 samples_20261122_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples_20261122
    ADD CONSTRAINT samples_20261122_pkey PRIMARY KEY (node_id, taken_at, report_id);


--
-- Name: samples_20261123 samples_20261123_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples_20261123
    ADD CONSTRAINT samples_20261123_pkey PRIMARY KEY (node_id, taken_at, report_id);


--
-- Name: samples_20261124 samples_20261124_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples_20261124
    ADD CONSTRAINT samples_20261124_pkey PRIMARY KEY (node_id, taken_at, report_id);


--
-- Name: samples_20261125 samples_20261125_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples_20261125
    ADD CONSTRAINT samples_20261125_pkey PRIMARY KEY (node_id, taken_at, report_id);


--
-- Name: samples_default samples_default_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.samples_default
    ADD CONSTRAINT samples_default_pkey PRIMARY KEY (node_id, taken_at, report_id);


--
-- Name: browser_sessions uq_browser_sessions_secret_sha256; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT uq_browser_sessions_secret_sha256 UNIQUE (secret_sha256);


--
-- Name: nodes uq_nodes_machine_id; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.nodes
    ADD CONSTRAINT uq_nodes_machine_id UNIQUE (machine_id);


--
-- Name: tokens uq_tokens_secret_sha256; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT uq_tokens_secret_sha256 UNIQUE (secret_sha256);


--
-- Name: ix_browser_sessions_expires_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_browser_sessions_expires_at ON public.browser_sessions USING btree (expires_at);


--
-- Name: ix_browser_sessions_token_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_browser_sessions_token_id ON public.browser_sessions USING btree (token_id);


--
-- Name: ix_nodes_name_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_nodes_name_id ON public.nodes USING btree (name, id);


--
-- Name: ix_plans_scenario_id_created_at_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_plans_scenario_id_created_at_id ON public.plans USING btree (scenario_id, created_at, id);


--
-- Name: ix_reports_received_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_reports_received_at ON public.reports USING btree (received_at);


--
-- Name: ix_runs_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_id ON public.runs USING btree (id);


--
-- Name: ix_runs_node_id_started_at_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_runs_node_id_started_at_id ON public.runs USING btree (node_id, started_at, id);


--
-- Name: ix_sample_hours_hour_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_sample_hours_hour_at ON public.sample_hours USING btree (hour_at);


--
-- Name: ix_scenarios_node_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_scenarios_node_id ON public.scenarios USING btree (node_id);


--
-- Name: ix_scenarios_updated_at_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_scenarios_updated_at_id ON public.scenarios USING btree (updated_at, id);


--
-- Name: ix_tokens_created_at_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_tokens_created_at_id ON public.tokens USING btree (created_at, id);


--
-- Name: ix_tokens_machine_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_tokens_machine_id ON public.tokens USING btree (machine_id);


--
-- Name: report_documents_20261121_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_report_documents ATTACH PARTITION public.report_documents_20261121_pkey;


--
-- Name: report_documents_20261122_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_report_documents ATTACH PARTITION public.report_documents_20261122_pkey;


--
-- Name: report_documents_20261123_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_report_documents ATTACH PARTITION public.report_documents_20261123_pkey;


--
-- Name: report_documents_20261124_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_report_documents ATTACH PARTITION public.report_documents_20261124_pkey;


--
-- Name: report_documents_20261125_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_report_documents ATTACH PARTITION public.report_documents_20261125_pkey;


--
-- Name: report_documents_default_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_report_documents ATTACH PARTITION public.report_documents_default_pkey;


--
-- Name: samples_20261121_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_samples ATTACH PARTITION public.samples_20261121_pkey;


--
-- Name: samples_20261122_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_samples ATTACH PARTITION public.samples_20261122_pkey;


--
-- Name: samples_20261123_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_samples ATTACH PARTITION public.samples_20261123_pkey;


--
-- Name: samples_20261124_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_samples ATTACH PARTITION public.samples_20261124_pkey;


--
-- Name: samples_20261125_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_samples ATTACH PARTITION public.samples_20261125_pkey;


--
-- Name: samples_default_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.pk_samples ATTACH PARTITION public.samples_default_pkey;


--
-- Name: browser_sessions fk_browser_sessions_token_id_tokens; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT fk_browser_sessions_token_id_tokens FOREIGN KEY (token_id) REFERENCES public.tokens(id) ON DELETE CASCADE;


--
-- Name: curves fk_curves_node_id_run_id_runs; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.curves
    ADD CONSTRAINT fk_curves_node_id_run_id_runs FOREIGN KEY (node_id, run_id) REFERENCES public.runs(node_id, id) ON DELETE CASCADE;


--
-- Name: plans fk_plans_scenario_id_scenarios; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.plans
    ADD CONSTRAINT fk_plans_scenario_id_scenarios FOREIGN KEY (scenario_id) REFERENCES public.scenarios(id) ON DELETE CASCADE;


--
-- Name: reports fk_reports_node_id_nodes; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.reports
    ADD CONSTRAINT fk_reports_node_id_nodes FOREIGN KEY (node_id) REFERENCES public.nodes(id) ON DELETE CASCADE;


--
-- Name: runs fk_runs_node_id_nodes; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT fk_runs_node_id_nodes FOREIGN KEY (node_id) REFERENCES public.nodes(id) ON DELETE CASCADE;


--
-- Name: sample_hours fk_sample_hours_node_id_nodes; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sample_hours
    ADD CONSTRAINT fk_sample_hours_node_id_nodes FOREIGN KEY (node_id) REFERENCES public.nodes(id) ON DELETE CASCADE;


--
-- Name: scenarios fk_scenarios_node_id_nodes; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.scenarios
    ADD CONSTRAINT fk_scenarios_node_id_nodes FOREIGN KEY (node_id) REFERENCES public.nodes(id) ON DELETE SET NULL;


--
-- PostgreSQL database dump complete
--

\unrestrict 6tTyc3ENvz9PtMgoo4lt8rXddVNAff0URq7FZiThXwRTfJ9ZTwfsbz0w416NZm3

