package postgres

import "strings"

// The statements. sql sets the schema, whose name needs no quotes.

// isNew are the rows of the log that are new since the snapshot $1: those of transactions that it does not show. The
// lower bound is for the index. The upper bound leaves out rows of another server that were restored from a dump.
const isNew = `xid >= pg_snapshot_xmin($1::text::pg_snapshot) AND xid < pg_snapshot_xmax(pg_current_snapshot())
    AND NOT pg_visible_in_snapshot(xid, $1::text::pg_snapshot)`

// isReadOnly reports whether the server or the database refuses writes by default, as a former primary that was fenced does. A setting
// of the role says nothing about the server. CASE reads the view of all settings only if it must.
const isReadOnly = `CASE WHEN current_setting('default_transaction_read_only') = 'on' THEN (SELECT source IN
    ('configuration file', 'command line', 'environment variable', 'global', 'database') FROM pg_settings
    WHERE name = 'default_transaction_read_only') ELSE false END`

// serverKindSQL reports whether the server is a replica, and whether it refuses writes.
const serverKindSQL = `SELECT pg_is_in_recovery(), ` + isReadOnly

// headSQL compares the present state with the snapshot $1. $2 bounds the count of new rows.
const headSQL = `SELECT pg_current_snapshot()::text,
  CASE WHEN pg_is_in_recovery() THEN '' ELSE concat_ws(' ', pg_postmaster_start_time(), left(pg_walfile_name(pg_current_wal_lsn()), 8),
    '{schema}.objects'::regclass::oid, '{schema}.changes'::regclass::oid) END,
  ` + isReadOnly + `, version, pruned, pruned_xid < pg_snapshot_xmin($1::text::pg_snapshot),
  (SELECT count(*) FROM (SELECT FROM {schema}.changes WHERE ` + isNew + ` LIMIT $2) news)
FROM {schema}.state`

// countSQL counts all rows of the log, and at most $1 objects.
const countSQL = `SELECT (SELECT count(*) FROM {schema}.changes), (SELECT count(*) FROM (SELECT FROM {schema}.objects LIMIT $1) bounded)`

// bytesSQL counts the bytes of all texts, as far as they are read.
const bytesSQL = `SELECT coalesce(sum(least(octet_length(body), 65537)), 0)::bigint FROM {schema}.objects`

// boundedBody cuts texts a little above source.MaxText, as the number of names is above source.MaxName: an operator can
// remove the table's own bounds.
const boundedBody = `CASE WHEN octet_length(o.body) > 65536 THEN left(o.body, 65537) ELSE o.body END, o.revision`

// columns are those of one object.
const columns = `left(o.kind, 20), left(o.name, 257), ` + boundedBody

// pageSQL reads $3 objects after a key.
const pageSQL = `SELECT ` + columns + ` FROM {schema}.objects o WHERE (kind, name) > ($1, $2) ORDER BY kind, name LIMIT $3`

// recoveredSQL gives a time that changes when the server recovers from a crash, also of one of its processes. Then it may have lost
// transactions whose commit was asynchronous, and give their numbers to others.
const recoveredSQL = `SELECT coalesce(stats_reset::text, '') FROM pg_stat_bgwriter`

// newsSQL reads the keys that have changed since the snapshot $1, in the order of their last changes, with the transactions that
// have changed them, and with their objects as they are now.
const newsSQL = `SELECT left(d.kind, 20), left(d.name, 257), d.xids, d.added, d.n, o.kind IS NOT NULL, ` + boundedBody + `
FROM (SELECT kind, name, array_agg(DISTINCT xid::text) AS xids, max(id) AS last, sum(added)::bigint AS added, count(*) AS n
  FROM {schema}.changes WHERE ` + isNew + ` GROUP BY kind, name) d
LEFT JOIN {schema}.objects o ON o.kind = d.kind AND o.name = d.name ORDER BY d.last`

const getSQL = `SELECT ` + columns + ` FROM {schema}.objects o WHERE kind = $1 AND name = $2`

// These give the revision if they have changed the object.
const (
	insertSQL = `INSERT INTO {schema}.objects (kind, name, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING revision`
	updateSQL = `UPDATE {schema}.objects SET body = $4 WHERE kind = $1 AND name = $2 AND revision = $3 RETURNING revision`
	deleteSQL = `DELETE FROM {schema}.objects WHERE kind = $1 AND name = $2 AND revision = $3 RETURNING revision`
)

const (
	addRecordSQL = `INSERT INTO {schema}.audit (at, object, record, customer) VALUES ($1::text::timestamptz, $2, $3::text::jsonb, $4)`
	// recordsSQL reads $3 records after record $2, or the newest ones.
	recordsSQL = `SELECT id, record::text FROM {schema}.audit WHERE ($1::text = '' OR object = $1::text)
  AND ($2::bigint = 0 OR (at, id) < (SELECT at, id FROM {schema}.audit WHERE id = $2::bigint)) ORDER BY at DESC, id DESC LIMIT $3`
)

// viewSQL gives the number of changes of rows, and the last records of the two kinds of writes.
const viewSQL = `SELECT pruned + (SELECT count(*) FROM {schema}.changes),
  coalesce((SELECT max(id) FROM {schema}.audit WHERE NOT customer), 0), coalesce((SELECT max(id) FROM {schema}.audit WHERE customer), 0)
FROM {schema}.state`

// needSQL keeps an object until the transaction ends.
const needSQL = `SELECT 1 FROM {schema}.objects WHERE kind = $1 AND name = $2 FOR KEY SHARE`

// beginWrite does not say READ WRITE, which a server that refuses writes by default would take.
const beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED"

// lockWritesSQL waits for the writes through Headgate that are open. Shared ones do not wait for each other.
func (s *Source) lockWritesSQL(shared bool) string {
	if shared {
		return s.sql("SELECT pg_advisory_xact_lock_shared(hashtext('{schema}.writes'))")
	}
	return s.sql("SELECT pg_advisory_xact_lock(hashtext('{schema}.writes'))")
}

const beginRead = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" //nolint:dupword // it is SQL

// lockSQL takes no snapshot. It needs the right to SELECT, and waits only for TRUNCATE and changes of the table itself.
const lockSQL = "LOCK TABLE {schema}.objects IN ACCESS SHARE MODE"

// sql sets the schema of a statement.
func (s *Source) sql(text string) string {
	return strings.ReplaceAll(text, "{schema}", s.config.Schema)
}
