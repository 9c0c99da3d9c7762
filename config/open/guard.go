package open

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/config/internal/region"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/rule"
)

// Guard makes the guard that a configuration describes, with a store of its own (Store). It
// opens the files that the configuration names. It does not follow a source: with source.without_state refuse, Guard is an error.
//
// The guard logs to the slog.Default of this moment. It logs refusals as log.decisions says,
// servers of a shared store that stop or start answering, and, once, the warnings of
// config.Config.Warn. It counts into a report.Report (report.Of), and prom.Guard exports
// that to Prometheus. Follow reloads a guard.
//
// The connections of a shared store live as long as the process. A program that closes them,
// or logs elsewhere, calls Store, config.Config.ReportConfig and GuardConfig itself.
func Guard(c *config.Config) (*guard.Guard, error) {
	log := slog.Default()
	counted, err := c.ReportConfig(log)
	if err != nil {
		return nil, err
	}
	store, err := Store(c, Options{Log: log})
	if err != nil {
		return nil, err
	}
	g, err := newGuard(c, store, report.New(counted))
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	c.Warn(log)
	return g, nil
}

// errUnfollowed says that a program cannot have the rules of a source.
var errUnfollowed = errors.New("open: the configuration has a source, which only headgate proxy and headgate server follow: leave " +
	"source out, or set source.without_state to allow to decide by the rules of the file alone")

func newGuard(c *config.Config, store *Opened, counted *report.Report) (*guard.Guard, error) {
	described, err := GuardConfig(c, store)
	if err != nil {
		return nil, err
	}
	if described.WithoutState {
		return nil, errUnfollowed
	}
	var show func()
	described.Observer, show = counted.PrepareConfig(&described)
	g, err := guard.New(described)
	if err != nil {
		return nil, err
	}
	counted.Reloads.Started(time.Now())
	show()
	return g, nil
}

// GuardConfig describes a guard on an existing store, and opens the files that the
// configuration names. An unusable file is a fault: the error is config.Faults.
//
// store is an *Opened, or the result of guard.Guard.Store of a guard on an *Opened. The error
// is then config.ErrStoreChanged if the configuration has another store, and Local is set
// where a rule falls back to it. For other stores, see config.Config.GuardConfig.
func GuardConfig(c *config.Config, store headgate.Store) (guard.Config, error) {
	opened, ours := store.(*Opened)
	if ours {
		if err := opened.check(c); err != nil {
			return guard.Config{}, err
		}
		store = opened.direct()
	}
	regions, faulty := openRegions(c)
	described, err := c.GuardConfig(store, regions)
	if err := errors.Join(faulty, err); err != nil {
		return guard.Config{}, c.Located(err)
	}
	if ours {
		if err := errors.Join(opened.describe(c, &described), opened.addThrottle(c, &described)); err != nil {
			return guard.Config{}, err
		}
	}
	return described, nil
}

// openRegions opens the region database. With an unusable file it gives an empty database, so
// that the caller finds the other faults too.
func openRegions(c *config.Config) (rule.Regions, error) {
	if c.Identity.RegionDB == "" {
		return nil, nil //nolint:nilnil // Without a database there are no regions.
	}
	db, err := region.Open(c.Identity.RegionDB)
	if err != nil {
		return nowhere{}, &config.FileError{Path: "identity.region_db", Err: err}
	}
	return db, nil
}

// nowhere takes the place of an unreadable database.
type nowhere struct{}

// Region implements rule.Regions.
func (nowhere) Region(netip.Addr) (string, bool) { return "", false }
