package postgres

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/config/source"
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
		"{max_records}", fmt.Sprint(source.MaxRecords),
		"{record_age}", fmt.Sprintf("%d hours", int(source.RecordAge.Hours())),
		"{max_changes}", fmt.Sprint(maxChanges),
		"{hold}", fmt.Sprint(hold),
		"{change_age}", fmt.Sprintf("%d minutes", int(changeAge.Minutes())),
	).Replace(schemaSQL)
}

// channel gives the channel on which the triggers notify.
func channel(schema string) string { return schema + "_changes" }
