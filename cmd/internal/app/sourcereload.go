package app

import (
	"time"

	"github.com/headgate/headgate/internal/config"
)

// withObjects adds the objects of the source in force to a file. The caller holds reloading.
func (i *Instance) withObjects(file *config.Config) (*config.Objects, *config.Config, error) {
	if i.source == nil {
		return nil, file, nil
	}
	in, err := i.source.table.Reload(file)
	if err != nil {
		return nil, nil, err
	}
	c := in.Config()
	return in, c, nil
}

// objectsReloaded takes the result of withObjects, and tries what is held back with the new file. The caller holds
// reloading.
func (i *Instance) objectsReloaded(in *config.Objects) {
	f := i.source
	if f == nil {
		return
	}
	f.table.Reloaded(in)
	f.table.Apply(f.running, time.Now())
	f.noteLacks()
	f.state.Loaded(f.table.Objects(), f.table.Held())
	if f.cache != nil && f.table.Objects().Known() {
		f.cache.Changed()
	}
}
