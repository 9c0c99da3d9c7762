package source

import (
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// Objects implements objects.Followed.
func (f *Follower) Objects() *config.Objects {
	f.instance.Lock()
	defer f.instance.Unlock()
	return f.table.Objects()
}

// Lacks implements objects.Followed.
func (f *Follower) Lacks() string { return f.state.Get().Lacks }

// Writer implements objects.Followed.
func (f *Follower) Writer() source.Writer {
	w, _ := f.source.(source.Writer)
	return w
}

// Place implements objects.Followed.
func (f *Follower) Place() string { return f.settings.Kind() + " " + f.settings.Place() }

// Position implements objects.Followed.
func (f *Follower) Position() int64 {
	f.instance.Lock()
	defer f.instance.Unlock()
	return f.at
}

// Held implements objects.Followed.
func (f *Follower) Held(key source.Key) (object *source.Object, why string, found bool) {
	f.instance.Lock()
	defer f.instance.Unlock()
	object, held, found := f.table.HeldObject(key)
	if !found {
		return nil, "", false
	}
	s := heldStatus(&held)
	for _, part := range []string{s.At, s.Problem, s.Fix} {
		if part != "" && why != "" {
			why += ": "
		}
		why += part
	}
	return object, why, true
}
