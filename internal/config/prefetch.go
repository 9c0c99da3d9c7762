package config

import (
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
)

const (
	// mostBatch bounds the units that are taken ahead at once.
	mostBatch = 1_000_000
)

const prefetchExample = "{batch: auto, hold: 50ms}"

// Prefetch says whether units are taken from a shared store ahead of need.
type Prefetch struct {
	// On takes units ahead of need. Default false.
	On bool
	// Batch is how many units are taken at once. With 0, the number follows demand.
	Batch int64
	// Hold is how long units may be spent. With 0, it is 1/200 of a limit's period, the shortest
	// one if there are several limits.
	Hold time.Duration
}

// String returns the setting in the words of a configuration.
func (p Prefetch) String() string {
	switch {
	case !p.On:
		return "off"
	case p.Batch == 0:
		return "auto"
	default:
		return strconv.FormatInt(p.Batch, 10)
	}
}

// prefetchDefault reads the setting for rules that have no prefetch of their own.
func (s *section) prefetchDefault() {
	p := &s.counting.prefetch
	s.declare("prefetch", field.Taken, "Units to take from a shared store ahead of need: off, auto (by demand), or the "+
		"number to take at once.")
	where, given := s.prefetch(p, "off")
	if given && p.On && s.counting.known && s.counting.shared == nil && !s.blamed("prefetch") {
		s.fault(where, "has no effect with store memory, which answers at once", "write off, remove it, or use a shared store")
		p.On = false
	}
}

// prefetch reads off, auto, a number, or a mapping of batch and hold. It returns the value, and
// whether one is set. preset is the default for the schema, or "".
func (s *section) prefetch(into *Prefetch, preset string) (where value, given bool) {
	o := s.outline.field("prefetch")
	o.words(preset, []string{"off", "auto"})
	o.number(0, 1, mostBatch)
	if s.settable {
		o.from(variableOf(s.pathOf("prefetch")))
	}
	v, ok := s.fromEnvironment("prefetch")
	if ok {
		s.record("prefetch")
		s.found()
	} else {
		v, ok = s.get("prefetch")
	}
	nested := value{path: s.pathOf("prefetch")}
	switch {
	case !ok:
	case v.node.Kind == yaml.MappingNode:
		nested.node = v.node
		*into = Prefetch{On: true}
	default:
		*into = Prefetch{}
		s.prefetchWord(v, into)
	}
	p := s.prefetchParts(nested, into)
	if p.self.node != nil || p.set == 0 {
		return v, ok
	}
	part, _ := p.anyGiven() // A variable, alone or in addition to a word.
	if ok && !into.On {
		s.fault(part, "has no effect with prefetch off", "remove it, or write prefetch: auto")
		return v, ok
	}
	into.On = true
	if !ok {
		v = part
	}
	return v, true
}

// prefetchWord reads a value that is not a mapping.
func (s *section) prefetchWord(v value, into *Prefetch) {
	switch {
	case v.node.Kind != yaml.ScalarNode:
		s.fault(v, "must be off, auto, a number or fields, not "+kindOf(v.node), "write it like auto, or "+prefetchExample)
	case v.text() == "off":
	case v.text() == "auto":
		into.On = true
	default:
		into.On = s.batchNumber(v, &into.Batch, "off, auto")
	}
}

// prefetchParts reads the fields of a mapping. nested has no node if there is no mapping.
func (s *section) prefetchParts(nested value, into *Prefetch) *section {
	p := s.section(nested, "write it like "+prefetchExample)
	p.settable, p.parent = s.settable, s
	p.outline = s.outline.field("prefetch").or()
	p.declare("batch", field.Taken, "Units to take at once. The default, auto, follows demand.")
	o := p.outline.field("batch")
	o.words("", []string{"auto"})
	o.number(0, 1, mostBatch)
	if v, ok := p.scalar("batch", "auto or a whole number"); ok && v.text() != "auto" {
		p.batchNumber(v, &into.Batch, "auto")
	}
	hold := into.Hold
	p.duration(p.declare("hold", field.Taken, "How long these units may be spent, 1ms to 1h. Default: 1/200 of the "+
		"limit's period."), &hold, check.LeastHold, check.MostHold)
	into.Hold = hold.Truncate(time.Microsecond) // Shared stores count in whole microseconds.
	p.end()
	return p
}

// batchNumber reads how many units are taken at once. The fix of a fault offers words too.
func (r *reader) batchNumber(v value, into *int64, words string) bool {
	if v.text() == "" || v.text()[0] < '0' || v.text()[0] > '9' {
		r.fault(v, quote(v.text())+" is not known", "write "+words+", or how many units are taken at once, like 100")
		return false
	}
	return r.wholeNumber(v, into, 1, mostBatch)
}

// anyGiven returns the first field that is set.
func (s *section) anyGiven() (value, bool) {
	for _, name := range s.recorded {
		if v, ok := s.given(name); ok {
			return v, true
		}
	}
	return value{}, false
}

// rulePrefetch is the resulting prefetch of a rule.
type rulePrefetch struct {
	Prefetch

	// why says why the rule cannot have the prefetch of the top level, or is "".
	why string
}

// rulePrefetch reads a rule's own prefetch, or inherits it, and sets Hold and Batch in all. all are
// the limits of the rule, and of each override. If the rule cannot have a prefetch of its own, that
// is a fault. If it cannot have an inherited prefetch, it has none.
func (s *section) rulePrefetch(r *guard.Rule, sh shape, all []limits) rulePrefetch {
	setting := s.counting.prefetch
	s.declare("prefetch", field.Taken, "Units to take ahead of need. Default: prefetch of the top level.")
	where, own := s.prefetch(&setting, "")
	s.outline.field("prefetch").dependent()
	got := rulePrefetch{Prefetch: setting}
	switch {
	case !setting.On || !s.counting.known || !sh.known || s.blamed(s.pathOf("prefetch")):
		return got
	case s.counting.shared == nil:
		s.fault(where, "has no effect with store memory, which answers at once", "write off, remove it, or use a shared store")
		return got
	}
	if problem, fix := check.Unprefetchable(r, sh.policy); problem != "" {
		got.why = problem
		if own {
			s.fault(where, problem, fix)
		}
		return got
	}
	for _, l := range all {
		held, problem, fix := check.Hold(l.policies, setting.Hold, setting.Batch, s.counting.fit)
		copy(l.policies, held)
		if problem == "" || slices.ContainsFunc(l.values, func(v value) bool { return s.blamed(v.path) }) {
			continue
		}
		got.why = problem
		if own {
			s.fault(where, problem, fix)
			return got
		}
	}
	return got
}
