// Package actions remembers what operators have changed at run time in an instance, with the commands that undo it.
package actions

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// Bounds of what is remembered: at most 2 MiB in total.
const (
	most     = 100
	mostText = 4096
)

// Ring has the last 100 actions. The zero Ring is empty. Ring is safe for concurrent use.
type Ring struct {
	mu   sync.Mutex
	last []admin.Action // the oldest first; guarded by mu
}

// Add remembers an action. A nil Ring remembers nothing. A command that is too long to be remembered is left out, and other texts are cut.
func (r *Ring) Add(a admin.Action) {
	if r == nil {
		return
	}
	for _, text := range []*string{&a.Object, &a.Before, &a.After, &a.Error} {
		if len(*text) > mostText {
			*text = strings.ToValidUTF8((*text)[:mostText], "") + " (cut)"
		}
	}
	if len(a.Undo) > mostText {
		a.Undo = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) == most {
		r.last = slices.Delete(r.last, 0, 1)
	}
	r.last = append(r.last, a)
}

// List gives the actions, the newest first.
func (r *Ring) List() []admin.Action {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.last)
	slices.Reverse(all)
	return all
}

// Marks gives the last actions for a chart, the newest first, without keys and values of keys. n bounds them.
func (r *Ring) Marks(n int) []admin.Mark {
	var marks []admin.Mark
	for _, a := range r.List() {
		if len(marks) == n {
			break
		}
		object, _, _ := strings.Cut(a.Object, " ") // The key of a rule stands behind it.
		marks = append(marks, admin.Mark{At: a.Time, Text: a.Action + " " + object, By: a.Caller})
	}
	return marks
}

// Command writes a command line for a POSIX shell. A word with other than plain characters is quoted.
func Command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		plain := func(c rune) bool {
			return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./:=@%+,", c)
		}
		if word == "" || strings.ContainsFunc(word, func(c rune) bool { return !plain(c) }) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// Left gives the time until an end as a flag of a command, at least a second.
func Left(until, now time.Time) string {
	text := max(until.Sub(now).Round(time.Second), time.Second).String()
	for _, zero := range [...]string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return "--for=" + text
}
