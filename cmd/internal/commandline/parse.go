package commandline

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ErrHelp says that the command line asks for help.
var ErrHelp = errors.New("help requested")

// Parse reads a command line into the structs. On ErrHelp, Parsed.WriteHelp has the text. A struct may have these methods:
//
//	BeforeReset(*Parsed) error    called when its command was named, before values are set and help is printed
//	Validate() error              called with the values
//	AfterApply(*Parsed) error     called after all checks
func (c *Command) Parse(args []string) (*Parsed, error) {
	p := &Parsed{Root: c}
	values := map[*Value]reflect.Value{}
	if err := p.trace(c, newScanner(args), values); err != nil {
		return p, err
	}
	for _, step := range p.Path {
		if step.Flag != nil && step.Flag.Name == helpFlag {
			return p, ErrHelp
		}
		if hook, is := step.Command.hook().(interface{ BeforeReset(*Parsed) error }); is {
			if err := hook.BeforeReset(p); err != nil {
				return p, err
			}
		}
	}
	if err := c.reset(p); err != nil {
		return p, err
	}
	for v, value := range values {
		v.target.Set(value)
	}
	if err := p.check(); err != nil {
		return p, err
	}
	for _, step := range p.Path {
		if hook, is := step.Command.hook().(interface{ AfterApply(*Parsed) error }); is {
			if err := hook.AfterApply(p); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// hook returns the struct of a command, and nil without a command.
func (c *Command) hook() any {
	if c == nil {
		return nil
	}
	return c.Target()
}

// trace follows the words from a command on.
func (p *Parsed) trace(c *Command, s *scanner, values map[*Value]reflect.Value) error {
	read := 0 // Arguments.
	for {
		t := s.peek()
		switch t.kind {
		case endOfLine:
			if c.fallback != nil && !p.helps() {
				p.Path = append(p.Path, Step{Command: c.fallback})
			}
			return nil
		case untyped:
			s.classify()
		case shortTail:
			s.pushShort(s.pop().text)
		case longFlag, shortFlag:
			if err := p.flag(c, s, values); err != nil {
				return err
			}
		case flagValue:
			return fmt.Errorf("unexpected flag argument %q", t.text)
		case positionals:
			if read < len(c.Args) {
				argument := c.Args[read]
				if err := argument.parse(s, valueFor(argument, values)); err != nil {
					return err
				}
				p.Path = append(p.Path, Step{Argument: argument})
				read++
				continue
			}
			child, err := c.child(t.text)
			if err != nil {
				return err
			}
			s.pop()
			p.Path = append(p.Path, Step{Command: child})
			return p.trace(child, s, values)
		}
	}
}

func (p *Parsed) helps() bool {
	for _, step := range p.Path {
		if step.Flag != nil && step.Flag.Name == helpFlag {
			return true
		}
	}
	return false
}

func (c *Command) child(name string) (*Command, error) {
	var names []string
	for _, child := range c.Children {
		if child.Name == name {
			return child, nil
		}
		names = append(names, child.Name)
	}
	return nil, unknown("unexpected argument "+name, name, names)
}

// flag reads the flag that is the next token, and its value.
func (p *Parsed) flag(c *Command, s *scanner, values map[*Value]reflect.Value) error {
	name := s.peek().String()
	var names []string
	for _, level := range c.levels() {
		for _, f := range level {
			names = append(names, "--"+f.Name)
			if f.Short != "" {
				names = append(names, "-"+f.Short)
			}
			if name != "--"+f.Name && (f.Short == "" || name != "-"+f.Short) {
				continue
			}
			s.pop()
			err := f.parse(s, valueFor(f, values))
			if expected, is := errors.AsType[*expectedError](err); is {
				if got := expected.token.inferred(); got == longFlag || got == shortFlag {
					return fmt.Errorf("%w; perhaps try --%s=%q?", err, f.Name, expected.token)
				}
			}
			if err != nil {
				return err
			}
			p.Path = append(p.Path, Step{Flag: f})
			return nil
		}
	}
	return unknown("unknown flag "+name, name, names)
}

// valueFor returns the place for what the command line gives, which replaces a default.
func valueFor(v *Value, values map[*Value]reflect.Value) reflect.Value {
	if _, has := values[v]; !has {
		values[v] = reflect.New(v.target.Type()).Elem()
	}
	return values[v]
}

// unknown returns an error that names the words within two edits of a name, or that begin with it.
func unknown(fault, name string, words []string) error {
	const mostEdits = 2
	var near []string
	for _, word := range words {
		if strings.HasPrefix(word, name) || edits(word, name) <= mostEdits {
			near = append(near, strconv.Quote(word))
		}
	}
	switch len(near) {
	case 0:
		return errors.New(fault)
	case 1:
		return fmt.Errorf("%s, did you mean %s?", fault, near[0])
	}
	return fmt.Errorf("%s, did you mean one of %s?", fault, strings.Join(near, ", "))
}

// edits returns the number of letters to insert, delete or replace between two words.
func edits(a, b string) int {
	to := []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for _, r := range a {
		corner := row[0]
		row[0]++
		for j, other := range to {
			cost := 1
			if r == other {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, corner+cost)
		}
	}
	return row[len(to)]
}

// reset gives each value its variable or its default. A variable that a command on the path cannot read is an error.
func (c *Command) reset(p *Parsed) error {
	for _, v := range slices.Concat(c.Flags, c.Args) {
		if err := v.reset(); err != nil && p.passes(c) {
			return err
		}
	}
	for _, child := range c.Children {
		if err := child.reset(p); err != nil {
			return err
		}
	}
	return nil
}

func (v *Value) reset() error {
	v.target.SetZero()
	for _, env := range v.Envs {
		if text, set := os.LookupEnv(env); set {
			if err := v.parse(&scanner{tokens: []token{{text, flagValue}}}, v.target); err != nil {
				v.target.SetZero()
				return fmt.Errorf("%w (from envar %s=%q)", err, env, text)
			}
			return nil
		}
	}
	if v.hasDefault {
		return v.parse(&scanner{tokens: []token{{v.Default, flagValue}}}, v.target)
	}
	return nil
}

// passes reports whether a command is on the path, or the program.
func (p *Parsed) passes(c *Command) bool {
	for _, step := range p.Path {
		if step.Command == c {
			return true
		}
	}
	return c == p.Root
}
