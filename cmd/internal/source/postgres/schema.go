package postgres

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

// schemaVersion is the version of the tables in schema.sql.
const schemaVersion = 1

const (
	// maxChanges and changeAge bound the log. A Source that has not read for longer reads all objects.
	maxChanges = 100_000
	changeAge  = time.Hour
	// hold times max_changes rows stay while a long transaction is open anywhere in the server.
	hold = 4
)

// unprintable are the characters that source.CheckName refuses, for a regular expression of PostgreSQL: controls, spaces, what is
// invisible, and private ones. Characters that Unicode has not assigned are missing, because their number depends on its version.
const unprintable = `\u0001-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e` +
	`\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff\ufeff\ufff9-\ufffb` +
	`\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e007f`

//go:embed schema.sql
var schemaSQL string

// Schema gives the SQL that makes the schema, its tables and triggers, or brings them up to date. It is safe to
// repeat, and runs in one transaction. The name must be valid for Config.Schema.
func Schema(name string) string {
	return strings.NewReplacer(
		"{schema}", name,
		"{channel}", channel(name),
		"{version}", fmt.Sprint(schemaVersion),
		"{max_text}", fmt.Sprint(source.MaxText),
		"{max_name}", fmt.Sprint(source.MaxName),
		"{unprintable}", unprintable,
		"{max_records}", fmt.Sprint(source.MaxRecords),
		"{max_record_bytes}", fmt.Sprint(source.MaxRecordBytes),
		"{record_age}", fmt.Sprintf("%d hours", int(source.RecordAge.Hours())),
		"{max_changes}", fmt.Sprint(maxChanges),
		"{hold}", fmt.Sprint(hold),
		"{change_age}", fmt.Sprintf("%d minutes", int(changeAge.Minutes())),
	).Replace(schemaSQL)
}

// channel gives the channel on which the triggers notify.
func channel(schema string) string { return schema + "_changes" }
