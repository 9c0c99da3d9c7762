package config

import (
	"runtime"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/source"
)

// parsedObject is the tree of an object, or its fault.
type parsedObject struct {
	document *document
	node     *yaml.Node
	fault    *Fault
}

// Bounds of what is parsed together: enough to use all processors, and few trees in memory. A tree takes a hundred times the
// size of its text.
const (
	parseAhead  = 2048
	parsedBytes = 1 << 20
)

// parsedObjects parses objects ahead of their reader, on all processors. One goroutine uses it.
type parsedObjects struct {
	rest  []source.Object // Not parsed yet.
	ready map[string]parsedObject
}

// next gives the tree of an object of the list. The calls are in the order of the list, and may leave out objects. known
// reports texts that no call needs.
func (p *parsedObjects) next(object source.Object, known func(text string) bool) parsedObject {
	for len(p.rest) > 0 && p.rest[0].Name <= object.Name {
		p.parse(known)
	}
	if parsed, found := p.ready[object.Name]; found {
		return parsed
	}
	return parseObject(object)
}

func parseObject(object source.Object) (p parsedObject) {
	p.document, p.node, p.fault = objectNode(object)
	return p
}

// parse parses the next objects, and only one of those with one text: most readers need no further one.
func (p *parsedObjects) parse(known func(text string) bool) {
	n, size := 0, 0
	for ; n < min(parseAhead, len(p.rest)) && size < parsedBytes; n++ {
		size += len(p.rest[n].Text)
	}
	texts := make(map[string]bool, n)
	needed := make([]source.Object, 0, n)
	for _, object := range p.rest[:n] {
		if !texts[object.Text] && !known(object.Text) {
			texts[object.Text], needed = true, append(needed, object)
		}
	}
	p.rest = p.rest[n:]
	parsed := make([]parsedObject, len(needed))
	workers := min(runtime.GOMAXPROCS(0), len(needed))
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			for i := w; i < len(needed); i += workers {
				parsed[i] = parseObject(needed[i])
			}
		})
	}
	working.Wait()
	p.ready = make(map[string]parsedObject, len(needed))
	for i := range needed {
		p.ready[needed[i].Name] = parsed[i]
	}
}
