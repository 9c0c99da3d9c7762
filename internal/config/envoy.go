package config

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/internal/errortype"
)

// EnvoyFile is the text of a file in the format of envoyproxy/ratelimit.
type EnvoyFile struct {
	Name string
	Text []byte
}

// ParseEnvoy reads files in the format of envoyproxy/ratelimit, each with the limits of one domain.
// A domain of several files is a fault, unless merge is set. The domains are in the order of the
// files. An error is of type Faults, with the faults of all files.
//
// A month has 30 days. In a file with `month: calendar`, it is a month of the calendar in UTC, for
// limits with the algorithm fixed_window, which is the default.
func ParseEnvoy(files []EnvoyFile, merge bool) ([]guard.Domain, error) {
	return EnvoyOptions{Merge: merge}.Parse(files)
}

// EnvoyOptions say how files of envoyproxy/ratelimit are understood.
type EnvoyOptions struct {
	// Merge allows several files of one domain.
	Merge bool
	// CalendarMonths is the month of files that do not state one: true is that of the calendar.
	CalendarMonths bool
}

// Parse is ParseEnvoy with options.
func (o EnvoyOptions) Parse(files []EnvoyFile) ([]guard.Domain, error) {
	set := envoySet{merge: o.Merge, calendarMonths: o.CalendarMonths, byName: map[string]*envoyDomain{}}
	for _, f := range files {
		set.add(f)
	}
	return set.result()
}

// result returns the domains, or the faults of all files.
func (set *envoySet) result() ([]guard.Domain, error) {
	for _, d := range set.domains {
		d.check()
	}
	if faults := set.faults(); len(faults) > 0 {
		return nil, faults
	}
	domains := make([]guard.Domain, len(set.domains))
	for i, d := range set.domains {
		domains[i] = d.Domain
	}
	return domains, nil
}

// envoySet has the domains of all files so far.
type envoySet struct {
	merge, calendarMonths bool

	files   []envoyFile
	domains []*envoyDomain
	byName  map[string]*envoyDomain
}

// envoyFile is a file that was read. A file that is not YAML has no reader.
type envoyFile struct {
	reader *reader
	fault  *Fault
}

// envoyDomain is a domain with the files that it came from.
type envoyDomain struct {
	guard.Domain

	parts []envoyPart
}

// envoyPart is the part of a domain from one file. Its first descriptor has the position first in
// the domain.
type envoyPart struct {
	root  *section
	first int
}

// add reads one file.
func (set *envoySet) add(f EnvoyFile) {
	src, bad := newSource(f.Name, f.Text)
	if bad == nil {
		var root *yaml.Node
		if root, bad = src.tree(); bad == nil {
			set.addRoot(src, root)
			return
		}
		if bad.Problem == problemEmpty {
			bad.Fix = envoyBegin
		}
	}
	set.files = append(set.files, envoyFile{fault: bad})
}

func (set *envoySet) addRoot(src *document, root *yaml.Node) {
	r := &reader{source: src, environment: func(string) (string, bool) { return "", false }, nullable: true, root: root}
	r.calendarMonths = set.calendarMonths
	set.files = append(set.files, envoyFile{reader: r})
	set.read(r)
}

const envoyBegin = "begin with domain: NAME"

// read reads the domain of a file.
func (set *envoySet) read(r *reader) {
	root := r.section(value{node: r.root}, envoyBegin)
	if root.self.node == nil {
		return
	}
	name := ""
	root.required("domain", envoyBegin)
	v, _ := root.text("domain", &name)
	if name == "" && root.has("domain") && !root.blamedAny("domain") {
		root.fault(root.keyOf("domain"), "is empty", "write the domain that requests name")
	}
	oneOf(root, "month", &r.calendarMonths, envoyMonths())
	descriptors := root.descriptors(envoyForm(), guard.FallbackError, 0)
	root.end()
	d := set.byName[name]
	if d != nil && !set.merge {
		root.fault(v, fmt.Sprintf("%s has the domain %s already", d.parts[0].root.source.name, quote(name)),
			"use another name, or set MERGE_DOMAIN_CONFIG")
		d = nil
	}
	if d == nil {
		d = &envoyDomain{Domain: guard.Domain{Name: name, Fallback: guard.FallbackError}}
		set.domains = append(set.domains, d)
	}
	if name != "" && set.byName[name] == nil {
		set.byName[name] = d
	}
	d.parts = append(d.parts, envoyPart{root, len(d.Descriptors)})
	d.Descriptors = append(d.Descriptors, descriptors...)
}

// check notes the faults of the whole tree, each in the file of its descriptor.
func (d *envoyDomain) check() {
	_, _, err := d.Index()
	for _, err := range check.Unjoin(err) {
		bad, found := errortype.As[*domain.NodeError](err)
		if !found {
			return
		}
		at := d.parts[0]
		for _, part := range d.parts[1:] {
			if part.first <= bad.At[0] {
				at = part
			}
		}
		at.root.nodeFault(bad, bad.At[0]-at.first)
	}
}

// faults returns the faults of all files, in the order of the files.
func (set *envoySet) faults() Faults {
	var all Faults
	for _, f := range set.files {
		if f.fault != nil {
			all = append(all, *f.fault)
			continue
		}
		if faults, found := errortype.As[Faults](f.reader.result()); found {
			all = append(all, faults...)
		}
	}
	if len(all) > maxFaults {
		all = append(all[:maxFaults:maxFaults], Fault{
			File: all[maxFaults].File, Problem: fmt.Sprintf("there are more than %d faults", maxFaults), Fix: "fix these first",
		})
	}
	return all
}
