package config

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds of a file. They keep the time for a hostile file near a second, and are far above the
// size of real configurations.
const (
	// maxFileBytes is enough for about 60,000 rules.
	maxFileBytes = 8 << 20
	// maxDepth is more than twice domain.MaxDepth, because each level of a tree is a list of
	// mappings. The parser is recursive.
	maxDepth = 96
	// maxMarks bounds the commas of [lists] and {mappings}, the anchors and the tags. The parser
	// takes microseconds for each, so 8 MiB of them would take about 15 seconds.
	maxMarks = 500_000
	// maxAliases bounds how many *aliases the reader follows.
	maxAliases = 10_000
	// maxFaults bounds the reported faults, so that the output stays readable.
	maxFaults = 100
)

// tree parses the source. It returns at most one fault, because the parser stops at the first
// syntax error.
func (s *document) tree() (*yaml.Node, *Fault) {
	marks := 0
	for _, mark := range []byte(",&!") {
		marks += bytes.Count(s.text, []byte{mark})
	}
	if marks > maxMarks {
		f := s.fault(place{}, "", fmt.Sprintf("the file has the characters , & and ! %d times, more than %d", marks, maxMarks),
			"write each entry of a long list on its own line, after a -")
		return nil, &f
	}
	var document yaml.Node
	err := yaml.Load(s.text, &document, yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		f := s.syntaxFault(err)
		return nil, &f
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		f := s.emptyFault()
		return nil, &f
	}
	if f := s.checkAliases(document.Content[0]); f != nil {
		return nil, f
	}
	return document.Content[0], nil
}

func (s *document) emptyFault() Fault {
	return Fault{File: s.name, Line: 1, Column: 1, Problem: problemEmpty, Fix: "begin with version: 1"}
}

// severalFault returns a fault at the start of the second document.
func (s *document) severalFault() Fault {
	begun := false
	for i, line := range s.lines() {
		word, _, _ := strings.Cut(line, " ")
		marker := word == "---" || word == "..."
		if marker && begun {
			return s.fault(place{i + 1, 1}, "", "a second document begins here", fixDocument)
		}
		begun = begun || !marker && word != "" && !strings.HasPrefix(line, "#")
	}
	return Fault{File: s.name, Problem: "the file has several documents", Fix: fixDocument}
}
