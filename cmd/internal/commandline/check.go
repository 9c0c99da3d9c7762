package commandline

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// check refuses values that do not fit, and a command line that lacks arguments or a subcommand.
func (p *Parsed) check() error {
	commands := []*Command{p.Root}
	for _, step := range p.Path {
		if step.Command != nil {
			commands = append(commands, step.Command)
		}
	}
	for _, c := range commands {
		for _, v := range slices.Concat(c.Flags, c.Args) {
			if err := v.checkEnum(); err != nil {
				return err
			}
		}
	}
	for _, c := range commands {
		if checked, is := c.Target().(interface{ Validate() error }); is {
			err := checked.Validate()
			switch {
			case err != nil && c.Parent == nil:
				return err
			case err != nil:
				return fmt.Errorf("%s: %w", c.path(), err)
			}
		}
	}
	if err := p.Selected().checkMissing(); err != nil {
		return err
	}
	for _, c := range commands {
		if err := c.checkXor(); err != nil {
			return err
		}
	}
	return nil
}

// checkMissing refuses a command without one of its subcommands or a required argument.
func (c *Command) checkMissing() error {
	const most = 5
	var missing, args []string
	for _, v := range c.Args {
		if v.required && !v.Set {
			args = append(args, v.short())
		}
	}
	if len(args) > 0 {
		missing = append(missing, strconv.Quote(strings.Join(args, " ")))
	}
	for _, child := range c.Children {
		missing = append(missing, strconv.Quote(child.Name))
	}
	if len(missing) > most {
		missing = append(missing[:most], "...")
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return errors.New("expected " + missing[0])
	}
	return errors.New("expected one of " + strings.Join(missing, ", "))
}

// checkXor refuses two flags that exclude each other.
func (c *Command) checkXor() error {
	first := map[string]*Value{}
	for _, f := range c.Flags {
		if !f.Set || f.xor == "" {
			continue
		}
		if other := first[f.xor]; other != nil {
			return fmt.Errorf("--%s and --%s can't be used together", other.Name, f.Name)
		}
		first[f.xor] = f
	}
	return nil
}
