package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/alecthomas/kong"

	"github.com/headgate/headgate/pace/etcd"
)

// limitCommand reads and changes the limits that pacers follow. They are in etcd, so that
// no instance is asked: any of them may be away.
type limitCommand struct {
	etcdFlags

	Get    getLimitCommand    `cmd:"" help:"Print the limits of all providers, or of one with those who share it."`
	Set    setLimitCommand    `cmd:"" help:"Set the limit of a provider, unless somebody else has changed it meanwhile."`
	Watch  watchLimitCommand  `cmd:"" help:"Print a line now and at each change of a provider's limit, until Ctrl-C."`
	Delete deleteLimitCommand `cmd:"" help:"Delete the limit of a provider."`
}

// BeforeReset takes the address of an instance out of the help, and refuses it: it would be
// of no use here, and who gives it expects something else.
func (*limitCommand) BeforeReset(parsed *kong.Context) error {
	for _, element := range parsed.Path {
		if element.Flag != nil && element.Flag.Name == "admin" {
			return errors.New("--admin is the address of an instance, and limits are in etcd: leave it out, and name etcd with --etcd")
		}
	}
	for _, flag := range parsed.Flags() {
		flag.Hidden = flag.Hidden || flag.Name == "admin"
	}
	return nil
}

// Validate refuses addresses and files that do not go together.
func (l *limitCommand) Validate() error {
	_, err := l.target()
	return err
}

// limitStore is what holds the limits: [etcd.Limits].
type limitStore interface {
	Get(ctx context.Context, provider string) (etcd.Entry, error)
	List(ctx context.Context) ([]etcd.Entry, error)
	Set(ctx context.Context, provider string, l etcd.Limit, revision int64) (int64, error)
	Delete(ctx context.Context, provider string, revision int64) error
	Watch(ctx context.Context, provider string, f func(etcd.Entry)) error
}

// limitSession is one command's work with the limits.
type limitSession struct {
	limits  limitStore
	out     io.Writer
	errors  io.Writer
	json    bool
	timeout time.Duration
	// explain says of an error of limits what was tried, and what to look at.
	explain func(error) error
	now     func() time.Time
}

// run connects to etcd and lets f work.
func (l *limitCommand) run(ctx context.Context, c *ctlCommand, out io.Writer, errors errorWriter, f func(*limitSession) error) error {
	to, err := l.target()
	if err != nil {
		return configError{err}
	}
	client, err := l.open(ctx, to)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // All is said: what cannot be closed ends with the process.
	return f(&limitSession{
		limits: etcd.Limits{Client: client, Prefix: l.Prefix}, out: out, errors: errors, json: c.JSON, timeout: l.Timeout,
		explain: func(err error) error { return l.explain(to, err) }, now: time.Now,
	})
}

// get reads what is known of a provider.
func (s *limitSession) get(ctx context.Context, provider string) (etcd.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.limits.Get(ctx, provider)
}

var providerTable = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// checkProvider refuses a name that no provider can have.
func checkProvider(name string) error {
	switch {
	case name == "":
		return errors.New("no provider is named: write it behind the command, like mail")
	case !providerTable.MatchString(name):
		return fmt.Errorf("provider %.130q: a name has 1 to 128 letters, digits and . _ : -", name)
	}
	return nil
}

// noLimit says that a provider has no limit, and how it gets one.
func noLimit(provider string) error {
	return fmt.Errorf("ctl: %s has no limit: set one, like headgate ctl limit set %s 1000/s; headgate ctl limit get lists those that have",
		provider, provider)
}
