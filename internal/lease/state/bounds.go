package state

import (
	"fmt"
	"strings"
)

// sender is a caller with holders or resources, and what it uses of the bounds of the server.
type sender struct {
	name      string
	holders   int
	resources int // that it has opened
	claims    int
}

// bound returns how many a caller may have of something that has a maximum: half, so that no caller takes all from the others.
// A server stands for many callers. Without authentication there is one caller without a name.
func bound(most int, caller string, rights Caller) int {
	if rights.Server || caller == "" {
		return most
	}
	return most / 2
}

// full returns an error if the server has most of something, or the caller has its half.
func full(all, own, most int, by *sender, rights Caller, resource, what string) *Error {
	var text string
	switch {
	case all >= most:
		text = fmt.Sprintf("the server has its maximum of %d %s: release some, or use another server", most, what)
	case by != nil && own >= bound(most, by.name, rights):
		text = fmt.Sprintf("caller %q has %d %s, half of the maximum: release some, or use another server", by.name, own, what)
	default:
		return nil
	}
	if resource == "" {
		return &Error{Code: Exhausted, Field: "holder", Text: text}
	}
	return &Error{Code: Exhausted, Resource: resource, Text: text}
}

func (s *Server) fullOfHolders(by *sender, rights Caller) *Error {
	own := 0
	if by != nil {
		own = by.holders
	}
	return full(len(s.holders), own, MaxHolders, by, rights, "", "holders")
}

func (s *Server) fullOfClaims(by *sender, rights Caller, resource string) *Error {
	return full(len(s.claimed), by.claims, MaxTotalClaims, by, rights, resource, "claims")
}

func (s *Server) fullOfResources(by *sender, rights Caller, resource string) *Error {
	return full(len(s.resources), by.resources, MaxResources, by, rights, resource, "resources")
}

// join adds a holder. by is nil for a caller without holders. The names may be parts of a large message.
func (s *Server) join(by *sender, caller, name string) *holder {
	if by == nil {
		by = &sender{name: strings.Clone(caller)}
		s.callers[by.name] = by
	}
	by.holders++
	h := &holder{name: strings.Clone(name), by: by}
	s.holders[h.name] = h
	return h
}

// leave removes a holder.
func (s *Server) leave(h *holder) {
	delete(s.holders, h.name)
	h.by.holders--
	s.part(h.by)
}

// part removes a caller without holders and resources.
func (s *Server) part(by *sender) {
	if by.holders == 0 && by.resources == 0 {
		delete(s.callers, by.name)
	}
}
