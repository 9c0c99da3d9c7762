package app

import (
	"errors"
	"sync"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// Values of admin.Object.Origin, as config.Origin has them.
const (
	originFile   = "file"
	originSource = "source"
)

// inForce are the rules, plans and customers in force, of the file and of the source.
type inForce struct{ *config.Objects }

// get returns an object by its key.
func (o inForce) get(key source.Key) (admin.Object, bool) {
	entry, found := o.Get(key)
	return objectOf(&entry), found
}

// list returns at most n objects of a kind with names after a name, by name.
func (o inForce) list(kind source.Kind, after string, n int) []admin.Object {
	entries := o.List(kind, after, n)
	all := make([]admin.Object, len(entries))
	for i := range entries {
		all[i] = objectOf(&entries[i])
	}
	return all
}

func objectOf(e *config.Entry) admin.Object {
	return admin.Object{Kind: e.Kind.String(), Name: e.Name, Text: e.Text, Revision: e.Revision, Origin: e.Origin.String()}
}

// check says why a change could not be in force, or else what would be. It changes nothing.
func (o inForce) check(c source.Change) (*config.Objects, []admin.ReloadFault) {
	next, faults := o.With(c)
	all := make([]admin.ReloadFault, len(faults))
	for i := range faults {
		all[i] = reloadFault(&faults[i].Fault)
	}
	return next, all
}

// fileObjects has the objects of a configuration without a source. Reading them costs as much as reading the file.
type fileObjects struct {
	mu      sync.Mutex
	config  *config.Config // guarded by mu, as is objects
	objects *config.Objects
}

// get gives the objects of a configuration.
func (f *fileObjects) get(c *config.Config) (inForce, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.config != c {
		objects, err := config.NewObjects(c)
		if err != nil {
			return inForce{}, err
		}
		f.config, f.objects = c, objects
	}
	return inForce{f.objects}, nil
}

// objectFollower has the objects of a source.
type objectFollower interface {
	// objects are those in force. They are not known before the source has answered.
	objects() *config.Objects
	// lacks says why nothing is in force although the source has answered, as when it is empty and the file needs a plan; "" otherwise.
	lacks() string
	// writer writes the source; nil for one that can only be read.
	writer() source.Writer
	// place names the source for people, such as http https://config.example.com/quotas.yaml.
	place() string
	// position is that of the last change of the source that was followed.
	position() int64
	// held gives the version of an object that is held back, and why. A nil object is a deletion.
	held(key source.Key) (object *source.Object, why string, found bool)
}

// objects implements objectFollower.
func (f *sourceFollower) objects() *config.Objects {
	f.instance.reloading.Lock()
	defer f.instance.reloading.Unlock()
	return f.table.Objects()
}

// lacks implements objectFollower.
func (f *sourceFollower) lacks() string { return f.state.Get().Lacks }

// writer implements objectFollower.
func (f *sourceFollower) writer() source.Writer {
	w, _ := f.source.(source.Writer)
	return w
}

// place implements objectFollower.
func (f *sourceFollower) place() string { return f.settings.Kind() + " " + f.settings.Place() }

// position implements objectFollower.
func (f *sourceFollower) position() int64 {
	f.instance.reloading.Lock()
	defer f.instance.reloading.Unlock()
	return f.at
}

// held implements objectFollower.
func (f *sourceFollower) held(key source.Key) (object *source.Object, why string, found bool) {
	f.instance.reloading.Lock()
	defer f.instance.reloading.Unlock()
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

// objects gives the rules, plans and customers in force. A source that has answered and lacks what the file needs has none: a write
// may add that.
func (i *Instance) objects() (inForce, *failure) {
	if i.followed != nil {
		o := i.followed.objects()
		if !o.Known() && i.followed.lacks() == "" {
			return inForce{}, unavailable(errSourceUnknown)
		}
		return inForce{o}, nil
	}
	o, err := i.fileObjects.get(i.config.Load())
	if err != nil {
		return inForce{}, unavailable(err)
	}
	return o, nil
}

var errSourceUnknown = errors.New("the source has not answered since the start: try again, and look at headgate ctl status")

// writer gives what can be written; nil without it.
func (i *Instance) writer() source.Writer {
	if i.followed == nil {
		return nil
	}
	return i.followed.writer()
}

// readOnly says why nothing can be written.
func (i *Instance) readOnly() string {
	const fix = ": change it there, or use the source etcd or postgres, which headgate can write"
	if i.followed == nil {
		return "rules, plans and customers are in the configuration file, which headgate only reads" + fix
	}
	return "the source " + i.followed.place() + " can only be read" + fix
}
