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

// Limits reads and changes the limits that pacers follow. The limits are in etcd, so that no
// instance has to be reachable.
type Limits struct {
	Etcd EtcdFlags
	// JSON prints JSON documents.
	JSON bool
	// Out receives the output. Errors receives the messages about an unreachable etcd.
	Out, Errors io.Writer
}

// limitStore stores the limits. [etcd.Limits] implements it.
type limitStore interface {
	Get(ctx context.Context, provider string) (etcd.Entry, error)
	List(ctx context.Context) ([]etcd.Entry, error)
	Set(ctx context.Context, provider string, l etcd.Limit, revision int64) (int64, error)
	Delete(ctx context.Context, provider string, revision int64) error
	Watch(ctx context.Context, provider string, f func(etcd.Entry)) error
}

// limitSession runs one command.
type limitSession struct {
	limits  limitStore
	out     io.Writer
	errors  io.Writer
	json    bool
	timeout time.Duration
	// explain adds to an error of limits what to check.
	explain func(error) error
	now     func() time.Time
}

// run connects to etcd and calls f.
func (l *Limits) run(ctx context.Context, f func(*limitSession) error) error {
	to, err := l.Etcd.target()
	if err != nil {
		return ConfigError{err}
	}
	client, err := l.Etcd.open(ctx, to)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // The process ends soon, and closes the connection if this fails.
	return f(&limitSession{
		limits: etcd.Limits{Client: client, Prefix: l.Etcd.Prefix}, out: l.Out, errors: l.Errors, json: l.JSON, timeout: l.Etcd.Timeout,
		explain: func(err error) error { return l.Etcd.explain(to, err) }, now: time.Now,
	})
}

func (s *limitSession) get(ctx context.Context, provider string) (etcd.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.limits.Get(ctx, provider)
}

var providerTable = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// CheckProvider refuses an invalid provider name.
func CheckProvider(name string) error {
	switch {
	case name == "":
		return errors.New("no provider is given: write its name after the command, like mail")
	case !providerTable.MatchString(name):
		return fmt.Errorf("provider %.130q: a name has 1 to 128 letters, digits and . _ : -", name)
	}
	return nil
}

// noLimit is the error for a provider without a limit.
func noLimit(provider string) error {
	return fmt.Errorf("ctl: %s has no limit: set one, like headgate ctl limit set %s 1000/s; headgate ctl limit get lists all providers",
		provider, provider)
}
