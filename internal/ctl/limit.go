package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/headgate/headgate/pace/etcd"
)

// Limits reads and changes the limits that pacers follow. They are in etcd, so that
// no instance is asked: any of them may be away.
type Limits struct {
	Etcd EtcdFlags
	// JSON prints documents for programs.
	JSON bool
	// Out gets what is printed, Errors what happens to a watched etcd.
	Out, Errors io.Writer
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
func (l *Limits) run(ctx context.Context, f func(*limitSession) error) error {
	to, err := l.Etcd.target()
	if err != nil {
		return ConfigError{err}
	}
	client, err := l.Etcd.open(ctx, to)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // All is said: what cannot be closed ends with the process.
	return f(&limitSession{
		limits: etcd.Limits{Client: client, Prefix: l.Etcd.Prefix}, out: l.Out, errors: l.Errors, json: l.JSON, timeout: l.Etcd.Timeout,
		explain: func(err error) error { return l.Etcd.explain(to, err) }, now: time.Now,
	})
}

// get reads what is known of a provider.
func (s *limitSession) get(ctx context.Context, provider string) (etcd.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.limits.Get(ctx, provider)
}

var providerTable = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// CheckProvider refuses a name that no provider can have.
func CheckProvider(name string) error {
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
