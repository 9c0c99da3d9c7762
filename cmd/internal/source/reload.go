package source

import (
	"time"

	"github.com/headgate/headgate/internal/config"
)

// WithObjects adds the objects of the source in force to a file. The caller holds the lock of the configuration.
func (f *Follower) WithObjects(file *config.Config) (*config.Objects, *config.Config, error) {
	in, err := f.table.Reload(file)
	if err != nil {
		return nil, nil, err
	}
	c := in.Config()
	return in, c, nil
}

// Reloaded takes the result of WithObjects, and tries what is held back with the new file. The caller holds the lock of the
// configuration.
func (f *Follower) Reloaded(in *config.Objects) {
	f.table.Reloaded(in)
	f.table.Apply(f.running, time.Now())
	f.noteLacks()
	f.state.Loaded(f.table.Objects(), f.table.Held())
	if f.cache != nil && f.table.Objects().Known() {
		f.cache.Changed()
	}
}
