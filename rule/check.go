package rule

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/internal/errortype"
)

const (
	// maxRuleName limits rule names, which are metric labels and fields of responses.
	maxRuleName = 64
	// maxPath limits paths of rules. Servers refuse requests with longer paths.
	maxPath = 4096
	// maxSegments limits the segments of a prefix, and so the lookups for a request's path.
	maxSegments = 64
	// maxHost and maxLabel are the limits of DNS for a name and a label.
	maxHost  = 253
	maxLabel = 63
	// maxCheckFaults limits the errors of one list of rules. Each error takes about 200
	// bytes.
	maxCheckFaults = 10_000
)

// fault describes an invalid value, without its place. The zero fault means a valid
// value.
type fault struct{ problem, fix string }

// checkRules finds all faults up to maxCheckFaults, so that the operator can correct
// them at once.
func checkRules(rules []Rule) error {
	c := checker{named: map[string]int{}, networks: map[networkList]bool{}}
	for i := range rules {
		if len(c.faults) == maxCheckFaults {
			break
		}
		c.rule = i
		c.check(&rules[i])
	}
	if len(c.faults) == 1 {
		return c.faults[0]
	}
	return errors.Join(c.faults...)
}

// checker collects the faults of a list of rules.
type checker struct {
	rule        int
	named       map[string]int
	size        int // of all expressions
	faults      []error
	networks    map[networkList]bool
	allNetworks int
}

// notePattern notes the fault of a pattern, and counts its expressions.
func (c *checker) notePattern(field string, p pattern, f fault) {
	if c.size += p.size(); c.size > maxExpressionsSize && p.size() > 0 && f == (fault{}) {
		f = fault{
			fmt.Sprintf("has the expression that makes all of them larger than %d instructions", maxExpressionsSize),
			"use fewer expressions, or templates and literals",
		}
	}
	c.note(field, f)
}

func (c *checker) note(field string, f fault) {
	if f != (fault{}) && len(c.faults) < maxCheckFaults {
		c.faults = append(c.faults, &RuleError{c.rule, field, f.problem, f.fix})
	}
}

func (c *checker) check(r *Rule) {
	c.note("name", c.checkName(r.Name))
	if bad, found := errortype.As[*KeyError](CheckKey(r.Key)); found {
		field := "key"
		if bad.Part < min(len(r.Key), MaxParts) {
			field = fmt.Sprintf("key[%d]", bad.Part)
		}
		c.note(field, fault{bad.Problem, bad.Fix})
	}
	c.checkVariables(r)
	c.checkMatch("match", &r.Match)
	c.checkExcept(r)
}

// checkMatch checks a match. field is its place in the rule.
func (c *checker) checkMatch(field string, m *Match) {
	p, f := compilePath(m.Path)
	c.notePattern(field+".path", p, f)
	for i, method := range m.Methods {
		p, f = compileMethod(method)
		c.notePattern(fmt.Sprintf("%s.methods[%d]", field, i), p, f)
	}
	for i, host := range m.Hosts {
		p, f = compileHost(host)
		c.notePattern(fmt.Sprintf("%s.hosts[%d]", field, i), p, f)
	}
	c.checkHeaders(field, m.Headers)
	c.checkQuery(field, m.Query)
	c.checkNetworks(field+".addresses", m.Addresses)
	p, f = compileDomain(m.Domain)
	c.notePattern(field+".domain", p, f)
	c.checkDescriptors(field, m.Descriptors)
	c.checkBody(field, m)
	if m.Not != nil {
		c.checkNot(field+".not", m.Not)
	}
}

func (c *checker) checkName(name string) fault {
	if f := checkNameText(name); f != (fault{}) {
		return f
	}
	if first, taken := c.named[name]; taken {
		return fault{fmt.Sprintf("%q is already the name of rules[%d]", name, first), "give each rule a unique name"}
	}
	c.named[name] = c.rule
	return fault{}
}

func checkNameText(name string) fault {
	const fix = "use 1 to 64 letters, digits, - _ and ."
	switch {
	case name == "":
		return fault{"is empty", fix}
	case len(name) > maxRuleName:
		return fault{fmt.Sprintf("is %d bytes long", len(name)), fix}
	}
	for i := range len(name) {
		if c := name[i]; !isDigit(c) && !isLetter(c) && c != '-' && c != '_' && c != '.' {
			return fault{fmt.Sprintf("%s contains %q", quote(name), name[i:i+1]), fix}
		}
	}
	return fault{}
}
