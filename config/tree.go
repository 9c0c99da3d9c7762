package config

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds of a file. They keep the time of a hostile one near a second, and are far
// above what a person or a generator of rules writes.
const (
	// maxFileBytes has room for some 60,000 rules.
	maxFileBytes = 8 << 20
	// maxDepth is some times what the deepest field needs. The parser recurses.
	maxDepth = 32
	// maxMarks bounds the commas of [lists] and {mappings}, the anchors and the tags:
	// the parser takes microseconds for each, and 8 MiB of them would take it a
	// quarter of a minute.
	maxMarks = 500_000
	// maxAliases bounds how often *aliases are followed.
	maxAliases = 10_000
	// maxFaults bounds what is reported: nobody reads more at a time.
	maxFaults = 100
)

// tree parses the source. The fault is the first of the text's form: behind it
// nothing is known of what the rest means.
func (s *source) tree() (*yaml.Node, *Fault) {
	marks := 0
	for _, mark := range []byte(",&!") {
		marks += bytes.Count(s.text, []byte{mark})
	}
	if marks > maxMarks {
		f := s.fault(place{}, "", fmt.Sprintf("the signs , & and ! stand in the file %d times, more than %d", marks, maxMarks),
			"write long lists one entry to a line, with - before each")
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

func (s *source) emptyFault() Fault {
	return Fault{File: s.name, Line: 1, Column: 1, Problem: "the file is empty", Fix: "begin with version: 1"}
}

// severalFault finds where the second document begins.
func (s *source) severalFault() Fault {
	begun := false
	for i, line := range s.lines() {
		word, _, _ := strings.Cut(line, " ")
		marker := word == "---" || word == "..."
		if marker && begun {
			return s.fault(place{i + 1, 1}, "", "a second document begins here", "write one document to a file")
		}
		begun = begun || !marker && word != "" && !strings.HasPrefix(line, "#")
	}
	return Fault{File: s.name, Problem: "the file has several documents", Fix: "write one document to a file"}
}
