package objects

import (
	"errors"
	"sync"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

// Values of admin.Object.Origin, as config.Origin has them.
const (
	originFile   = "file"
	originSource = "source"
)

// shown are the rules, plans and customers in force, of the file and of the source, as documents.
type shown struct{ *config.Objects }

// get returns an object by its key.
func (o shown) get(key source.Key) (admin.Object, bool) {
	entry, found := o.Get(key)
	return objectOf(&entry), found
}

// list returns at most n objects of a kind with names after a name, by name.
func (o shown) list(kind source.Kind, after string, n int) []admin.Object {
	entries := o.List(kind, after, n)
	all := make([]admin.Object, len(entries))
	for i := range entries {
		all[i] = objectOf(&entries[i])
	}
	return all
}

// Names gives the names of at most n objects of a kind, after a name and in their order.
func (c *Component) Names(kind source.Kind, after string, n int) ([]string, *calls.Failure) {
	in, failure := c.objects()
	if failure != nil {
		return nil, failure
	}
	entries := in.List(kind, after, n)
	names := make([]string, len(entries))
	for i := range entries {
		names[i] = entries[i].Name
	}
	return names, nil
}

func objectOf(e *config.Entry) admin.Object {
	return admin.Object{Kind: e.Kind.String(), Name: e.Name, Text: e.Text, Revision: e.Revision, Origin: e.Origin.String()}
}

// check says why a change could not be in force, or else what would be. It changes nothing.
func (o shown) check(c source.Change) (*config.Objects, []admin.ReloadFault) {
	next, faults := o.With(c)
	all := make([]admin.ReloadFault, len(faults))
	for i := range faults {
		all[i] = calls.FaultOf(&faults[i].Fault)
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
func (f *fileObjects) get(c *config.Config) (shown, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.config != c {
		objects, err := config.NewObjects(c)
		if err != nil {
			return shown{}, err
		}
		f.config, f.objects = c, objects
	}
	return shown{f.objects}, nil
}

// Followed has the objects of a source.
type Followed interface {
	// Objects are those in force. They are not known before the source has answered.
	Objects() *config.Objects
	// Lacks says why nothing is in force although the source has answered, as when it is empty and the file needs a plan; "" otherwise.
	Lacks() string
	// Writer writes the source; nil for one that can only be read.
	Writer() source.Writer
	// Place names the source for people, such as http https://config.example.com/quotas.yaml.
	Place() string
	// Position is that of the last change of the source that was followed.
	Position() int64
	// Held gives the version of an object that is held back, and why. A nil object is a deletion.
	Held(key source.Key) (object *source.Object, why string, found bool)
}

// objects gives the rules, plans and customers in force. A source that has answered and lacks what the file needs has none: a write
// may add that.
func (c *Component) objects() (shown, *calls.Failure) {
	if c.Followed != nil {
		o := c.Followed.Objects()
		if !o.Known() && c.Followed.Lacks() == "" {
			return shown{}, calls.Unavailable(errSourceUnknown)
		}
		return shown{o}, nil
	}
	o, err := c.file.get(c.inEffect())
	if err != nil {
		return shown{}, calls.Unavailable(err)
	}
	return o, nil
}

var errSourceUnknown = errors.New("the source has not answered since the start: try again, and look at headgate ctl status")

// writer gives what can be written; nil without it.
func (c *Component) writer() source.Writer {
	if c.Followed == nil {
		return nil
	}
	return c.Followed.Writer()
}

// readOnly says why nothing can be written.
func (c *Component) readOnly() string {
	const fix = ": change it there, or use the source etcd or postgres, which headgate can write"
	if c.Followed == nil {
		return "rules, plans and customers are in the configuration file, which headgate only reads" + fix
	}
	return "the source " + c.Followed.Place() + " can only be read" + fix
}
