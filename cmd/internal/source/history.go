package source

import (
	"slices"
	"time"

	"github.com/headgate/headgate/internal/config"
)

// remember adds a change of the source to the history, if it has changed an object in force. The first objects are no change.
func (f *Follower) remember(former *config.Objects, at time.Time) {
	next := f.table.Objects()
	if !former.Known() || former == next {
		return
	}
	if names := changedNames(former, next); len(names) > 0 {
		f.host.History.Add(at, "source "+f.settings.Place(), names, nil, nil)
	}
}

// changedNames names the objects of the source that were added, changed or removed, sorted.
func changedNames(former, next *config.Objects) []string {
	var names []string
	for object := range next.Sourced {
		if was, found := former.Get(object.Key); !found || was.Origin == config.FromFile || was.Text != object.Text {
			names = append(names, object.Key.String())
		}
	}
	for object := range former.Sourced {
		if now, found := next.Get(object.Key); !found || now.Origin == config.FromFile {
			names = append(names, object.Key.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
