// Package commandline reads a command line into the fields of structs, and prints help from their tags.
//
// The package finds no method by its name. A program that does so keeps the methods of all its types, called or not: with
// such a parser, the daemon was 13 MB larger.
package commandline

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Command is a command with its flags, and its arguments or subcommands. The tags of a struct's fields describe it:
//
//	cmd:""          a subcommand, which is a struct; default:"1" runs it when no other is named
//	arg:""          an argument; optional:"" for one that may be left out
//	embed:""        the fields of a struct, as of an embedded struct
//	help, name, placeholder, short, default, env, enum, sep, xor
//
// Every other field is a flag.
type Command struct {
	Name     string // Empty for the program.
	Help     string
	Detail   string // The method Help of the struct.
	Flags    []*Value
	Args     []*Value
	Children []*Command
	Parent   *Command // Nil for the program.

	program  string
	fallback *Command // The child with default:"1".
	target   reflect.Value
}

// Value is a flag or an argument.
type Value struct {
	Name        string
	Help        string
	Default     string
	Enum        []string
	Placeholder string
	Envs        []string
	Short       string // One letter, or empty.
	Hidden      bool
	Set         bool // The command line, a variable or the default gave the value.

	flag       bool
	hasDefault bool
	required   bool
	separator  string // Between the elements of a list; empty for none.
	xor        string // Flags with one word exclude each other.
	target     reflect.Value
}

// New returns the program that the fields of a struct describe. The grammar is a pointer to the struct.
func New(name, description string, grammar any) (*Command, error) {
	v := reflect.ValueOf(grammar)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("commandline: the grammar is %T: use a pointer to a struct", grammar)
	}
	root := &Command{Help: description, program: name, target: v.Elem()}
	var asked bool
	root.Flags = []*Value{{
		Name: helpFlag, Short: "h", Help: "Show context-sensitive help.", flag: true, target: reflect.ValueOf(&asked).Elem(),
	}}
	err := root.read(root.target)
	return root, err
}

const helpFlag = "help"

// Target returns a pointer to the struct of the command.
func (c *Command) Target() any { return c.target.Addr().Interface() }

// read adds the fields of a struct.
func (c *Command) read(v reflect.Value) error {
	for i := range v.NumField() {
		field, tag := v.Type().Field(i), v.Type().Field(i).Tag
		if _, embedded := tag.Lookup("embed"); embedded || field.Anonymous {
			if err := c.read(v.Field(i)); err != nil {
				return err
			}
			continue
		}
		name := tag.Get("name")
		if name == "" {
			name = dashed(field.Name)
		}
		if _, is := tag.Lookup("cmd"); is {
			if err := c.readChild(name, tag, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		value := newValue(name, tag, v.Field(i))
		if !value.readable() {
			return fmt.Errorf("commandline: field %s of %s is %s, which no value is read into", field.Name, v.Type(), field.Type)
		}
		if value.flag {
			c.Flags = append(c.Flags, value)
		} else {
			c.Args = append(c.Args, value)
		}
	}
	return nil
}

func (c *Command) readChild(name string, tag reflect.StructTag, v reflect.Value) error {
	child := &Command{Name: name, Help: tag.Get("help"), Parent: c, program: c.program, target: v}
	if detailed, is := child.Target().(interface{ Help() string }); is {
		child.Detail = detailed.Help()
	}
	if _, is := tag.Lookup("default"); is {
		c.fallback = child
	}
	c.Children = append(c.Children, child)
	return child.read(v)
}

func newValue(name string, tag reflect.StructTag, target reflect.Value) *Value {
	_, argument := tag.Lookup("arg")
	_, optional := tag.Lookup("optional")
	v := &Value{
		Name: name, Placeholder: tag.Get("placeholder"), Short: tag.Get("short"),
		flag: !argument, required: argument && !optional, separator: ",", xor: tag.Get("xor"), target: target,
	}
	v.Default, v.hasDefault = tag.Lookup("default")
	if env := tag.Get("env"); env != "" {
		v.Envs = []string{env}
	}
	if enum := tag.Get("enum"); enum != "" {
		v.Enum = strings.Split(enum, ",")
	}
	if tag.Get("sep") == "none" {
		v.separator = ""
	}
	v.Help = strings.ReplaceAll(tag.Get("help"), "${enum}", tag.Get("enum"))
	return v
}

// IsBool reports whether the flag needs no value.
func (v *Value) IsBool() bool { return v.target.Kind() == reflect.Bool }

// IsList reports whether each value is added to those before.
func (v *Value) IsList() bool { return v.target.Kind() == reflect.Slice }

// Text returns the value of a string, or an empty text.
func (v *Value) Text() string {
	if v.target.Kind() != reflect.String {
		return ""
	}
	return v.target.String()
}

// short names the value in errors and in the usage.
func (v *Value) short() string {
	if v.flag {
		return "--" + v.Name
	}
	text := "<" + v.Name + ">"
	if v.IsList() {
		text += " ..."
	}
	if !v.required {
		text = "[" + text + "]"
	}
	return text
}

// shown returns what stands for the value of a flag in the help.
func (v *Value) shown() string {
	more := ""
	if v.IsList() && v.separator != "" {
		more = v.separator + "..."
	}
	switch {
	case v.Placeholder != "":
		return v.Placeholder + more
	case v.hasDefault && v.target.Kind() == reflect.String:
		return strconv.Quote(v.Default) + more
	case v.hasDefault:
		return v.Default + more
	}
	return strings.ToUpper(v.Name) + more
}

// path returns the names of the commands from the program to this one, without the program.
func (c *Command) path() string {
	if c.Parent == nil {
		return c.Name
	}
	return strings.TrimSpace(c.Parent.path() + " " + c.Name)
}

// levels returns the flags of the program and of each command to this one.
func (c *Command) levels() [][]*Value {
	if c.Parent == nil {
		return [][]*Value{c.Flags}
	}
	return append(c.Parent.levels(), c.Flags)
}

// leaves returns the commands below that have no subcommands.
func (c *Command) leaves() []*Command {
	var leaves []*Command
	for _, child := range c.Children {
		if len(child.Children) == 0 {
			leaves = append(leaves, child)
			continue
		}
		leaves = append(leaves, child.leaves()...)
	}
	return leaves
}

// dashed returns the name of a field as the name of a flag: DryRun is dry-run.
func dashed(name string) string {
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && unicode.IsLower(runes[i-1]) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Parsed is a command line that was read.
type Parsed struct {
	Root *Command
	Path []Step // In the order of the command line.
}

// Step is one element of a command line: one of the fields is set.
type Step struct {
	Command        *Command
	Flag, Argument *Value
}

// Selected returns the command that was named, or the program.
func (p *Parsed) Selected() *Command {
	selected := p.Root
	for _, step := range p.Path {
		if step.Command != nil {
			selected = step.Command
		}
	}
	return selected
}

// Flags returns the flags of the program and of each command of the path.
func (p *Parsed) Flags() []*Value { return slices.Concat(p.Selected().levels()...) }
