package component

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// Bounds of History: at most 20 changes of about 3 KiB.
const (
	// mostChanges is the number of changes that are kept.
	mostChanges = 20
	// mostNames bounds the names of a change, and the settings that wait for a restart.
	mostNames = 10
	// mostName and mostChangeError bound a text, in bytes.
	mostName        = 128
	mostChangeError = 300
)

// History has the last changes of the configuration. The zero History is empty. It is safe for concurrent use.
type History struct {
	mu      sync.Mutex
	changes []admin.ConfigChange // the oldest first
}

// Add adds a change. names are what has changed, in the order in which they are shown. err says that the former configuration
// stays in effect.
func (h *History) Add(at time.Time, by string, names, waiting []string, err error) {
	c := admin.ConfigChange{
		At: at.UTC(), By: bounded(by, mostName), Changed: len(names), Names: boundedList(names), Waiting: boundedList(waiting),
	}
	if err != nil {
		c.Error = bounded(newReloadFailure("", err, at).Error, mostChangeError)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.changes) == mostChanges {
		h.changes = slices.Delete(h.changes, 0, 1)
	}
	h.changes = append(h.changes, c)
}

// List returns the changes, the newest first.
func (h *History) List() []admin.ConfigChange {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Clone(h.changes)
	slices.Reverse(all)
	return all
}

// Marks returns the changes as marks of live and history, the newest first.
func (h *History) Marks() []admin.Mark {
	all := h.List()
	marks := make([]admin.Mark, len(all))
	for i := range all {
		marks[i] = admin.Mark{At: all[i].At, Text: markText(&all[i]), By: all[i].By}
	}
	return marks
}

func markText(c *admin.ConfigChange) string {
	switch {
	case c.Error != "":
		return "configuration not reloaded: " + c.Error
	case c.Changed == 0:
		return "configuration reloaded, without a change"
	case c.Changed > len(c.Names):
		return fmt.Sprintf("configuration changed: %s and %d more", strings.Join(c.Names, ", "), c.Changed-len(c.Names))
	default:
		return "configuration changed: " + strings.Join(c.Names, ", ")
	}
}

// boundedList returns the first texts.
func boundedList(texts []string) []string {
	first := slices.Clone(texts[:min(len(texts), mostNames)])
	for i := range first {
		first[i] = bounded(first[i], mostName)
	}
	return first
}

// bounded returns a copy of a text. A text of more than most bytes is cut and ends with an ellipsis.
func bounded(text string, most int) string {
	if len(text) <= most {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..." // A character may have been cut in two.
}
