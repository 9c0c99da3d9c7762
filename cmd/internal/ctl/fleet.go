package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config/field"
)

// Bounds of a fleet.
const (
	maxFleet = 256
	// atOnce bounds the requests at a time.
	atOnce = 16
	// maxInstanceName is the longest name that a configuration may give.
	maxInstanceName = 64
)

// namePrefix begins an element of --admin that stands for all addresses of a name.
const namePrefix = "dns:"

// Fleet is the instances that a command is about. One command uses a Fleet.
type Fleet struct {
	// Instance has what all instances have in common. Its Admin lists addresses with commas, each as for one Instance; dns:NAME:PORT stands
	// for all addresses of a name.
	Instance

	// Errors receives notes for a person.
	Errors io.Writer
	// Resolve is for tests; nil means the system's resolver.
	Resolve func(ctx context.Context, name string) ([]string, error)
}

// nameIn is the name of the instance that has answered, which another program may have written.
func nameIn(h http.Header) string {
	name := h.Get(admin.InstanceHeader)
	return terminal.Printable(name[:min(len(name), maxInstanceName)])
}

// instances are those of --admin, each once. many says that --admin may have several, so that tables name the instances.
func (f *Fleet) instances(ctx context.Context) (all []*Instance, many bool, err error) {
	many = strings.Contains(f.Admin, ",") || strings.HasPrefix(f.Admin, namePrefix)
	for at := range strings.SplitSeq(f.Admin, ",") {
		at = strings.TrimSpace(at)
		found := []*Instance{f.at(at)}
		if name, isName := strings.CutPrefix(at, namePrefix); isName {
			if found, err = f.named(ctx, name); err != nil {
				return nil, many, err
			}
		}
		for _, one := range found {
			if !slices.ContainsFunc(all, func(other *Instance) bool { return other.Admin == one.Admin }) {
				all = append(all, one)
			}
		}
	}
	if len(all) > maxFleet {
		return nil, many, ConfigError{fmt.Errorf("ctl: --admin has %d instances: name at most %d", len(all), maxFleet)}
	}
	return all, many, nil
}

func (f *Fleet) at(address string) *Instance {
	one := f.Instance
	one.Admin = address
	return &one
}

// named are the instances at all addresses of a name, which may have a scheme before it. Their certificates have the name.
func (f *Fleet) named(ctx context.Context, text string) ([]*Instance, error) {
	scheme := ""
	for _, known := range []string{plainScheme, tlsScheme} {
		if rest, found := strings.CutPrefix(text, known); found {
			scheme, text = known, rest
		}
	}
	name, port, err := net.SplitHostPort(text)
	if err != nil || name == "" || port == "" {
		return nil, ConfigError{fmt.Errorf("ctl: --admin: %q has no name and port: write dns:headgate-admin.default.svc:9902", text)}
	}
	resolve := f.Resolve
	if resolve == nil {
		resolve = net.DefaultResolver.LookupHost
	}
	ctx, cancel := context.WithTimeout(ctx, ctlTimeout)
	defer cancel()
	addresses, err := resolve(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("ctl: --admin: %w: check the name, and that this machine uses the DNS server that knows it", err)
	}
	slices.Sort(addresses)
	var all []*Instance
	for _, address := range addresses {
		one := f.at(scheme + net.JoinHostPort(address, port))
		one.serverName = name
		all = append(all, one)
	}
	return all, nil
}

// single is the instance of an --admin that names one; nil for a list or a name.
func (f *Fleet) single(ctx context.Context) (*Instance, []*Instance, error) {
	all, many, err := f.instances(ctx)
	if err != nil || many {
		return nil, all, err
	}
	return all[0], all, nil
}

// showFleet requests a page of all instances, as show does of one. write gets the answers; a table names the instances. With JSON, the
// output is one list. The error has those of the instances that do not answer, and the output has the others.
func showFleet[T any](
	ctx context.Context, f *Fleet, page string, out io.Writer, one func(io.Writer, *T) error, write func(io.Writer, []admin.From[T]) error,
) error {
	single, all, err := f.single(ctx)
	switch {
	case err != nil:
		return err
	case single != nil:
		return show(ctx, single, page, out, one)
	}
	if f.JSON {
		answers, failed := answersOf[json.RawMessage](ctx, all, page)
		return errors.Join(writeList(out, answers), failed)
	}
	answers, failed := answersOf[T](ctx, all, page)
	answers = slices.DeleteFunc(answers, func(a admin.From[T]) bool { return a.Error != "" })
	if len(answers) == 0 {
		return failed
	}
	return errors.Join(write(out, answers), failed)
}

// writeList prints what instances answer as a JSON list.
func writeList(out io.Writer, list any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(list) //nolint:wrapcheck // The writer is the caller's.
}

// answersOf requests a page of instances, atOnce at a time. The answers have the order of the instances.
func answersOf[T any](ctx context.Context, all []*Instance, page string) ([]admin.From[T], error) {
	return eachInstance(all, func(c *Instance, into *T) error {
		text, err := c.query(ctx, http.MethodGet, page)
		if err != nil {
			return err
		}
		return c.decode(text, into)
	})
}

// eachInstance calls do for each instance, atOnce at a time. The answers have the order of the instances, and different names. The error
// has those of all instances.
func eachInstance[T any](all []*Instance, do func(c *Instance, into *T) error) ([]admin.From[T], error) {
	answers, failed := make([]admin.From[T], len(all)), make([]error, len(all))
	var asking sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, c := range all {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			failed[i] = do(c, &answers[i].Answer)
		})
	}
	asking.Wait()
	seen := map[string]bool{}
	for i, c := range all {
		address := strings.TrimPrefix(c.Admin, plainScheme)
		answers[i].Address, answers[i].Instance = address, cmp.Or(c.name, address)
		if seen[answers[i].Instance] {
			answers[i].Instance += " at " + address // Two instances have the same name in their configuration.
		}
		seen[answers[i].Instance] = true
		if failed[i] != nil {
			answers[i].Error = failed[i].Error()
		}
	}
	return answers, joined(failed)
}

// joined has each different error once. An error of usage is one for all instances.
func joined(failed []error) error {
	var different []error
	for _, err := range failed {
		if usage, found := errors.AsType[ConfigError](err); found {
			return usage
		}
		if err != nil && !slices.ContainsFunc(different, func(other error) bool { return other.Error() == err.Error() }) {
			different = append(different, err)
		}
	}
	return errors.Join(different...)
}

// One is the instance for a command about what all instances share, like the objects of a source: the first that answers. A note says
// which one it is, if there are several.
func (f *Fleet) One(ctx context.Context) (*Instance, error) {
	single, all, err := f.single(ctx)
	if err != nil || single != nil {
		return single, err
	}
	var failed []error
	for _, c := range all {
		if _, err := c.query(ctx, http.MethodGet, modePage); err != nil {
			failed = append(failed, err)
			continue
		}
		f.notef("%s is asked, 1 of %s", c.shown(), field.Counted(len(all), "instance"))
		return c, nil
	}
	return nil, joined(failed)
}

// shown names an instance for a person.
func (c *Instance) shown() string {
	if c.name == "" {
		return c.Admin
	}
	return c.name + " (" + c.Admin + ")"
}

func (f *Fleet) notef(format string, args ...any) {
	if f.Errors != nil {
		_, _ = fmt.Fprintf(f.Errors, "headgate: "+format+"\n", args...)
	}
}
