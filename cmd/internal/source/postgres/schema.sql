-- The tables of Headgate's rules, plans and customers. This script is safe to repeat.
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT pg_advisory_xact_lock(hashtext('{schema}.headgate')); -- Two scripts at once would fail.
CREATE SCHEMA IF NOT EXISTS {schema};

-- One row for each object. Triggers set the revision. A name has no controls, no spaces except U+0020, and nothing invisible.
CREATE TABLE IF NOT EXISTS {schema}.objects (
  kind     text   NOT NULL CONSTRAINT objects_kind_check CHECK (kind IN ('rule', 'plan', 'customer', 'mode')),
  name     text   NOT NULL CHECK (octet_length(name) BETWEEN 1 AND {max_name} AND name !~ '[{unprintable}]'),
  body     text   NOT NULL CHECK (octet_length(body) <= {max_text}),
  revision bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, name)
);
ALTER TABLE {schema}.objects DROP CONSTRAINT IF EXISTS objects_kind_check, ADD CONSTRAINT objects_kind_check
  CHECK (kind IN ('rule', 'plan', 'customer', 'mode')); -- Older tables have no modes.
CREATE SEQUENCE IF NOT EXISTS {schema}.revisions;

-- One row for each change of a row. added is the change of the number of objects.
CREATE TABLE IF NOT EXISTS {schema}.changes (
  id    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xid   xid8        NOT NULL DEFAULT pg_current_xact_id(),
  at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  kind  text        NOT NULL,
  name  text        NOT NULL,
  added smallint    NOT NULL
);
CREATE INDEX IF NOT EXISTS changes_xid ON {schema}.changes (xid);

-- One row for each change that was made through Headgate.
CREATE TABLE IF NOT EXISTS {schema}.audit (
  id     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at     timestamptz NOT NULL,
  object text        NOT NULL CHECK (octet_length(object) <= 1024),
  record jsonb       NOT NULL,
  customer boolean   NOT NULL DEFAULT false                 -- The record is about a customer, and not about a rule or plan.
);
ALTER TABLE {schema}.audit ADD COLUMN IF NOT EXISTS customer boolean NOT NULL DEFAULT false;
CREATE INDEX IF NOT EXISTS audit_at ON {schema}.audit (at, id);
CREATE INDEX IF NOT EXISTS audit_kind ON {schema}.audit (customer, id);
CREATE INDEX IF NOT EXISTS audit_object ON {schema}.audit (object, at, id);

-- One row: what was removed from the log, and the bounds.
CREATE TABLE IF NOT EXISTS {schema}.state (
  single      boolean  PRIMARY KEY DEFAULT true CHECK (single),
  version     integer  NOT NULL,
  pruned      bigint   NOT NULL DEFAULT 0,                -- The number of rows that were removed from changes.
  pruned_xid  xid8     NOT NULL DEFAULT '0',              -- The highest xid of these rows.
  next_id     bigint   NOT NULL DEFAULT 0,                -- The row of changes, and the time, at which rows are removed next:
  next_at     timestamptz NOT NULL DEFAULT '-infinity',   -- finding the oldest row is slow behind rows that were removed.
  max_changes bigint   NOT NULL DEFAULT {max_changes} CHECK (max_changes >= 1),
  change_age  interval NOT NULL DEFAULT '{change_age}',
  max_records bigint   NOT NULL DEFAULT {max_records} CHECK (max_records >= 1),
  record_age  interval NOT NULL DEFAULT '{record_age}'
);
ALTER TABLE {schema}.state ADD COLUMN IF NOT EXISTS max_record_bytes bigint NOT NULL DEFAULT {max_record_bytes}
  CHECK (max_record_bytes >= 1);
INSERT INTO {schema}.state (version) VALUES ({version}) ON CONFLICT DO NOTHING;

-- A sequence, because a revision must not come back when an object is deleted and made again.
CREATE OR REPLACE FUNCTION {schema}.set_revision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.revision := nextval('{schema}.revisions');
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION {schema}.log_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    INSERT INTO {schema}.changes (kind, name, added) VALUES ('', '', 0); -- All objects are read again.
  ELSIF TG_OP = 'INSERT' THEN
    INSERT INTO {schema}.changes (kind, name, added) VALUES (NEW.kind, NEW.name, 1);
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO {schema}.changes (kind, name, added) VALUES (OLD.kind, OLD.name, -1);
  ELSIF OLD.kind = NEW.kind AND OLD.name = NEW.name THEN
    INSERT INTO {schema}.changes (kind, name, added) VALUES (NEW.kind, NEW.name, 0);
  ELSE
    INSERT INTO {schema}.changes (kind, name, added) VALUES (OLD.kind, OLD.name, -1), (NEW.kind, NEW.name, 1);
  END IF;
  RETURN NULL;
END $$;

-- Removes at most 1,000 of the oldest rows of the log beyond the bounds. It waits for no other transaction. It runs
-- once for 500 rows, or once a minute, so that most changes remove nothing. Rows of transactions that began after the oldest one
-- that is open stay, up to {hold} times max_changes: readers cannot know whether they have seen these transactions when their
-- rows are gone, and would read all objects again.
CREATE OR REPLACE FUNCTION {schema}.prune_changes() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  bounds  {schema}.state;
  newest  bigint;
  sure    xid8;
  n       bigint;
  highest xid8;
BEGIN
  SELECT * INTO bounds FROM {schema}.state;
  newest := coalesce((SELECT max(id) FROM {schema}.changes), 0);
  IF newest < bounds.next_id AND clock_timestamp() < bounds.next_at THEN
    RETURN;
  END IF;
  PERFORM FROM {schema}.state FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN; -- Another transaction removes rows.
  END IF;
  sure := pg_snapshot_xmin(pg_current_snapshot());
  WITH old AS (
    SELECT id FROM (SELECT id, at, xid FROM {schema}.changes ORDER BY id LIMIT 1000) oldest
    WHERE id <= newest - {hold} * bounds.max_changes OR xid < sure
      AND (id <= newest - bounds.max_changes OR at < clock_timestamp() - bounds.change_age)
  ), gone AS (
    DELETE FROM {schema}.changes USING old WHERE changes.id = old.id RETURNING changes.xid
  )
  SELECT count(*), (array_agg(xid ORDER BY xid DESC))[1] INTO n, highest FROM gone;
  UPDATE {schema}.state SET pruned = pruned + n, pruned_xid = greatest(pruned_xid, highest),
    next_id = newest + least(max_changes, 500), next_at = clock_timestamp() + interval '1 minute';
EXCEPTION WHEN serialization_failure OR deadlock_detected THEN
  NULL; -- The next change removes the rows.
END $$;

CREATE OR REPLACE FUNCTION {schema}.notify_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_notify('{channel}', '');
  PERFORM {schema}.prune_changes();
  RETURN NULL;
END $$;

-- Removes at most 100 of the oldest records beyond each of the bounds. The new records stay, although the clock that gave their time may
-- be slow. The newest record of each kind stays, because writers compare its id.
CREATE OR REPLACE FUNCTION {schema}.prune_audit() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  bounds {schema}.state;
  kept   bigint[];
BEGIN
  SELECT * INTO bounds FROM {schema}.state;
  kept := array(SELECT id FROM added) || coalesce((SELECT max(id) FROM {schema}.audit WHERE customer), 0)
    || coalesce((SELECT max(id) FROM {schema}.audit WHERE NOT customer), 0);
  DELETE FROM {schema}.audit WHERE id IN (
    SELECT id FROM {schema}.audit WHERE at < clock_timestamp() - bounds.record_age AND id <> ALL (kept) ORDER BY at, id LIMIT 100
    FOR UPDATE SKIP LOCKED);
  DELETE FROM {schema}.audit WHERE id IN (
    SELECT a.id FROM {schema}.audit a
    WHERE (a.at, a.id) <= (SELECT at, id FROM {schema}.audit ORDER BY at DESC, id DESC OFFSET bounds.max_records LIMIT 1)
      AND a.id <> ALL (kept)
    ORDER BY a.at, a.id LIMIT 100 FOR UPDATE SKIP LOCKED);
  DELETE FROM {schema}.audit WHERE id IN (
    SELECT id FROM (SELECT id, at, sum(pg_column_size(record)) OVER (ORDER BY at DESC, id DESC) AS bytes FROM {schema}.audit) sized
    WHERE bytes > bounds.max_record_bytes AND id <> ALL (kept) ORDER BY at, id LIMIT 100);
  RETURN NULL;
EXCEPTION WHEN serialization_failure OR deadlock_detected THEN
  RETURN NULL; -- The next record removes them.
END $$;

DROP TRIGGER IF EXISTS headgate_revision ON {schema}.objects;
DROP TRIGGER IF EXISTS headgate_log ON {schema}.objects;
DROP TRIGGER IF EXISTS headgate_truncate ON {schema}.objects;
DROP TRIGGER IF EXISTS headgate_notify ON {schema}.objects;
DROP TRIGGER IF EXISTS headgate_notify_truncate ON {schema}.objects;
DROP TRIGGER IF EXISTS headgate_prune ON {schema}.audit;
CREATE TRIGGER headgate_revision BEFORE INSERT OR UPDATE ON {schema}.objects
  FOR EACH ROW EXECUTE FUNCTION {schema}.set_revision();
CREATE TRIGGER headgate_log AFTER INSERT OR UPDATE OR DELETE ON {schema}.objects
  FOR EACH ROW EXECUTE FUNCTION {schema}.log_change();
CREATE TRIGGER headgate_truncate AFTER TRUNCATE ON {schema}.objects
  FOR EACH STATEMENT EXECUTE FUNCTION {schema}.log_change();
CREATE TRIGGER headgate_notify AFTER INSERT OR UPDATE OR DELETE ON {schema}.objects
  FOR EACH STATEMENT EXECUTE FUNCTION {schema}.notify_change();
CREATE TRIGGER headgate_notify_truncate AFTER TRUNCATE ON {schema}.objects
  FOR EACH STATEMENT EXECUTE FUNCTION {schema}.notify_change();
CREATE TRIGGER headgate_prune AFTER INSERT ON {schema}.audit
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION {schema}.prune_audit();
-- ALWAYS: logical replication and restores disable other triggers.
ALTER TABLE {schema}.objects ENABLE ALWAYS TRIGGER headgate_revision;
ALTER TABLE {schema}.objects ENABLE ALWAYS TRIGGER headgate_log;
ALTER TABLE {schema}.objects ENABLE ALWAYS TRIGGER headgate_truncate;
ALTER TABLE {schema}.objects ENABLE ALWAYS TRIGGER headgate_notify;
ALTER TABLE {schema}.objects ENABLE ALWAYS TRIGGER headgate_notify_truncate;
REVOKE ALL ON FUNCTION {schema}.prune_changes() FROM PUBLIC;
COMMIT;
