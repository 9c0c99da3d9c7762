package etcd

import (
	"errors"
	"strconv"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/headgate/headgate/internal/config/source"
)

// history says which data of etcd was read, and up to which revision.
type history struct {
	cluster, term uint64
	revision      int64
}

func historyOf(h *etcdserverpb.ResponseHeader) history {
	return history{h.GetClusterId(), h.GetRaftTerm(), h.GetRevision()}
}

var errHistory = errors.New("config/source/etcd: etcd has lost its data, or is another cluster: everything is read again")

// follows checks an answer that came after h. A cluster that has lost its data begins with small revisions and
// terms again. A cluster that was restored from a snapshot has another id.
func (h history) follows(later history) error {
	if later.cluster != h.cluster || later.term < h.term || later.revision < h.revision {
		return errHistory
	}
	return nil
}

// contents has the revision of each object that the receiver has. With it, the revision of the source depends on
// the contents only, and not on what an instance has seen. It costs some 60 bytes for each object.
type contents struct {
	versions map[source.Key]version
	bytes    int // of all texts
	newest   int64
	stale    bool // The newest object is gone, and newest is still its revision.
}

// version is that of an object, and the length of its text.
type version struct {
	revision int64
	bytes    int
}

func (c *contents) set(objects []source.Object) {
	*c = contents{versions: make(map[source.Key]version, len(objects))}
	for i := range objects {
		c.put(&objects[i])
	}
}

func (c *contents) put(o *source.Object) {
	c.bytes += len(o.Text) - c.versions[o.Key].bytes
	c.versions[o.Key] = version{o.Revision, len(o.Text)}
	if o.Revision >= c.newest {
		c.newest, c.stale = o.Revision, false
	}
}

// remove reports whether the object existed.
func (c *contents) remove(k source.Key) bool {
	was, found := c.versions[k]
	delete(c.versions, k)
	c.bytes -= was.bytes
	c.stale = c.stale || found && was.revision == c.newest
	return found
}

// text gives the newest revision of an object and the number of objects, like 1742/350. After the removal of the newest
// object, it looks at all others, once for each transaction.
func (c *contents) text() string {
	if c.stale {
		c.newest, c.stale = 0, false
		for _, v := range c.versions {
			c.newest = max(c.newest, v.revision)
		}
	}
	return strconv.FormatInt(c.newest, 10) + "/" + strconv.Itoa(len(c.versions))
}
