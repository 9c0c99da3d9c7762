package apilist

import (
	"fmt"
	"go/types"
	"strings"
)

// writer collects the lines of one package.
type writer struct {
	own   *types.Package
	lines []string
	// inside are the lines that name a type of an internal package, which users cannot name.
	inside []string
	named  bool // such a type was named since the last line
}

func (w *writer) addf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	w.lines = append(w.lines, line)
	if w.named {
		w.inside = append(w.inside, w.own.Path()+": "+line)
	}
	w.named = false
}

// object adds the lines of a package-level name.
func (w *writer) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		w.addf("const %s %s = %s", o.Name(), w.text(o.Type()), o.Val().ExactString())
	case *types.Var:
		w.addf("var %s %s", o.Name(), w.text(o.Type()))
	case *types.Func:
		w.addf("func %s%s", o.Name(), w.signature(o.Signature()))
	case *types.TypeName:
		w.typeName(o)
	}
}

// typeName adds a type with its exported fields and methods.
func (w *writer) typeName(o *types.TypeName) {
	named, ok := o.Type().(*types.Named)
	if o.IsAlias() || !ok {
		text := w.text(types.Unalias(o.Type()))
		w.named = false // An alias is how users name the type.
		w.addf("type %s = %s", o.Name(), text)
		return
	}
	name := o.Name() + w.parameters(named.TypeParams())
	switch under := named.Underlying().(type) {
	case *types.Struct:
		w.addf("type %s struct", name)
		w.fields(name, under)
	case *types.Interface:
		w.interfaceType(name, under)
		return
	default:
		w.addf("type %s %s", name, w.text(under))
	}
	w.methods(name, named)
}

func (w *writer) fields(name string, s *types.Struct) {
	for f := range s.Fields() {
		switch {
		case !f.Exported():
		case f.Embedded():
			w.addf("type %s struct, embedded %s", name, w.text(f.Type()))
		default:
			w.addf("type %s struct, %s %s", name, f.Name(), w.text(f.Type()))
		}
	}
}

func (w *writer) interfaceType(name string, i *types.Interface) {
	w.addf("type %s interface", name)
	closed := false
	for m := range i.Methods() {
		if !m.Exported() {
			closed = true
			continue
		}
		w.addf("type %s interface, %s%s", name, m.Name(), w.signature(m.Signature()))
	}
	if closed {
		w.addf("type %s interface, unexported methods", name)
	}
	if !i.IsMethodSet() {
		w.addf("type %s interface, constraint %s", name, w.text(i))
	}
}

// methods adds the exported methods of a type, including the methods of embedded types.
func (w *writer) methods(name string, named *types.Named) {
	values := types.NewMethodSet(named)
	for s := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		m, ok := s.Obj().(*types.Func)
		if !ok || !m.Exported() {
			continue
		}
		receiver := "*" + name
		if values.Lookup(m.Pkg(), m.Name()) != nil {
			receiver = name
		}
		w.addf("method (%s) %s%s", receiver, m.Name(), w.signature(m.Signature()))
	}
}

// signature formats a function type without the names of parameters and results, which may
// change.
func (w *writer) signature(s *types.Signature) string {
	var b strings.Builder
	b.WriteString(w.parameters(s.TypeParams()))
	params := w.tuple(s.Params())
	if s.Variadic() {
		last := len(params) - 1
		params[last] = "..." + strings.TrimPrefix(params[last], "[]")
	}
	b.WriteString("(" + strings.Join(params, ", ") + ")")
	switch results := w.tuple(s.Results()); len(results) {
	case 0:
	case 1:
		b.WriteString(" " + results[0])
	default:
		b.WriteString(" (" + strings.Join(results, ", ") + ")")
	}
	return b.String()
}

func (w *writer) tuple(t *types.Tuple) []string {
	texts := make([]string, 0, t.Len())
	for v := range t.Variables() {
		texts = append(texts, w.text(v.Type()))
	}
	return texts
}

// parameters formats type parameters, like [K comparable, V any], or "" without parameters.
func (w *writer) parameters(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	texts := make([]string, 0, list.Len())
	for p := range list.TypeParams() {
		texts = append(texts, p.Obj().Name()+" "+w.text(p.Constraint()))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// text formats a type, with package names before names of other packages.
func (w *writer) text(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == w.own {
			return ""
		}
		w.named = w.named || isInternal(p.Path())
		return p.Name()
	})
}
