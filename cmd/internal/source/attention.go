package source

import (
	"cmp"
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/internal/config/field"
)

// Attention says that the source cannot be read, and which changes are held back.
func (f *Follower) Attention(add func(admin.Attention)) {
	n := f.state.Get()
	name := f.settings.Place()
	if a := attentionOf(&n, name, time.Now()); a != nil {
		add(*a)
	}
	if len(n.Held) > 0 {
		since := n.Held[0].Since.UTC()
		add(admin.Attention{
			Level: admin.LevelWarning, About: "source", Name: name, Since: &since,
			Text: fmt.Sprintf("%s of the source %s not in force: headgate ctl status names the objects and the faults.",
				field.Counted(len(n.Held), "change"), map[bool]string{true: "is", false: "are"}[len(n.Held) == 1]),
		})
	}
}

// attentionOf says what is wrong with reading the source; nil if nothing is.
func attentionOf(n *objects.Snapshot, name string, now time.Time) *admin.Attention {
	why := cmp.Or(n.Failure, n.Lacks)
	if why == "" && n.Known && !n.FromCache {
		return nil
	}
	a := &admin.Attention{Level: admin.LevelFault, About: "source", Name: name}
	if why != "" {
		why = ": " + why
	}
	switch {
	case !n.Known:
		a.Text = "The source " + name + " has not given rules yet, so the setting without_state decides" + why + ". Check the source."
	case n.FromCache:
		a.Text = "The rules are those of the cache, because the source " + name + " has not answered since the start" +
			why + ". Check the source."
	default:
		a.Level = admin.LevelWarning
		a.Text = fmt.Sprintf("The source %s cannot be read, and changes do not arrive: the objects in force are %s old%s. "+
			"Check the source.", name, now.Sub(n.Reached).Round(time.Second), why)
	}
	if !n.FailedAt.IsZero() {
		since := n.FailedAt.UTC()
		a.Since = &since
	}
	return a
}
