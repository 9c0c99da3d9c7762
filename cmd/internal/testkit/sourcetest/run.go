package sourcetest

import (
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/network"
)

// Server is a real server with many places.
type Server interface {
	// Place makes an empty place.
	Place(t *testing.T) Place
	// Kill ends the server as kill -9 does, and Restart starts it again with its data.
	Kill()
	Restart()
}

// Options are the settings of a source under test. A zero value means the default.
type Options struct {
	MaxObjects int
	MaxBytes   int
	Timeout    time.Duration
}

// Place keeps the objects of one test.
type Place interface {
	// Open opens a source that is connected directly. Through opens one that is connected through a link. The test
	// closes the source.
	Open(t *testing.T, o Options) source.Writer
	Through(t *testing.T, link *network.Link, o Options) source.Writer
	// Link makes a link to the server.
	Link(t *testing.T) *network.Link
	// Commit makes all edits in one transaction, as an operator does without Headgate.
	Commit(t *testing.T, edits ...Edit)
	// KeepRecords bounds the records of the place, and gives a source with this bound.
	KeepRecords(t *testing.T, n int) source.Writer
	// KeepRecordBytes is KeepRecords for the texts of all records.
	KeepRecordBytes(t *testing.T, n int) source.Writer
}

// Edit changes one object without a writer. An empty text deletes it.
type Edit struct {
	Key  source.Key
	Text string
}

// Story is one test with a place of its own.
type Story struct {
	Name string
	Run  func(*testing.T, Place)
}

// Run tests the sources of a server. more are stories that only this server has.
func Run(t *testing.T, s Server, more ...Story) {
	t.Helper()
	t.Run("stories", func(t *testing.T) {
		for _, story := range append(more, []Story{
			{"first read", firstRead},
			{"changes", changes},
			{"a transaction is one change", transactions},
			{"each transaction during a lost connection is one change", missedTransactions},
			{"of two writers, one loses and is told", conflicts},
			{"many writers", manyWriters},
			{"random changes", randomChanges},
			{"hostile names and texts", hostile},
			{"refused writes", refused},
			{"records", records},
			{"old records are removed", pruned},
			{"records beyond a size are removed", prunedBytes},
			{"writes after a view", views},
			{"a view and a race", viewRace},
			{"a view and a race of two customers", customerRace},
			{"too many objects", tooMany},
			{"too many bytes", tooLarge},
			{"a cut link", cutLink},
			{"a silent link", silentLink},
			{"a link that is silent in mid-answer", midAnswer},
			{"a slow link", slowLink},
			{"the end", end},
		}...) {
			t.Run(story.Name, func(t *testing.T) {
				t.Parallel()
				story.Run(t, s.Place(t))
			})
		}
	})
	t.Run("kill -9 in the middle", func(t *testing.T) { killed(t, s) })
	t.Run("starts without the server", func(t *testing.T) { absent(t, s) })
}
