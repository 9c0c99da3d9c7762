package why

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/explain"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// Bounds of a request. The body of the call bounds all of it.
const (
	maxFields = 100
	maxTarget = 8 << 10
)

// requestOf makes the request as a server would have read it.
func requestOf(ctx context.Context, order *admin.ExplainOrder) (*explain.Request, error) {
	line, err := lineOf(order)
	if err != nil {
		return nil, err
	}
	flags := explain.Flags{Request: line, IP: order.Address, Subject: order.Subject, Times: 1}
	if order.Host != "" {
		flags.Header = append(flags.Header, "Host: "+order.Host)
	}
	for _, name := range slices.Sorted(maps.Keys(order.Headers)) {
		for _, value := range order.Headers[name] {
			if order.Host != "" && strings.EqualFold(name, "host") {
				return nil, errors.New("the request has a host and a header Host: write one of them")
			}
			flags.Header = append(flags.Header, name+": "+value)
		}
	}
	if len(flags.Header) > maxFields {
		return nil, fmt.Errorf("the request has %d header fields: write at most %d", len(flags.Header), maxFields)
	}
	req, err := flags.Parse(ctx)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "check: "))
	}
	if order.Length < 0 {
		return nil, fmt.Errorf("length is %d: write the bytes of the body, 0 or more", order.Length)
	}
	if sent := req.HTTP(); order.Length > 0 && sent.ContentLength <= 0 {
		sent.ContentLength = order.Length
	}
	return req, nil
}

// lineOf returns method and target.
func lineOf(order *admin.ExplainOrder) (string, error) {
	line := order.Request
	target := order.Path
	if target == "" {
		target = order.URL
	}
	switch {
	case order.Path != "" && order.URL != "":
		return "", errors.New("the request has a path and a url: write one of them")
	case line != "" && (order.Method != "" || target != ""):
		return "", errors.New("request is the method and the path: leave out method, path and url")
	case line == "" && target == "":
		return "", errors.New(`the request has no path: write "request": "GET /v1/search", or method and path`)
	case line == "":
		method := order.Method
		if method == "" {
			method = "GET"
		}
		line = method + " " + target
	}
	if len(line) > maxTarget {
		return "", fmt.Errorf("method and path have %d bytes: write at most %d", len(line), maxTarget)
	}
	return line, nil
}

// applyCustomer writes the name of a customer into the headers and cookies by which fair share and rules name clients. It says what it
// could not do.
func applyCustomer(order *admin.ExplainOrder, c *config.Config) (notes []string, err error) {
	if order.Customer == "" {
		return nil, nil
	}
	if strings.ContainsAny(order.Customer, "\r\n\x00") {
		return nil, errors.New("customer has a line break or a zero byte, which no header can have: leave it out")
	}
	var parts []rule.Part
	if c.FairShare != nil {
		parts = append(parts, c.FairShare.Client)
	}
	for i := range c.Rules {
		if key := c.Rules[i].Key; len(key) > 0 {
			parts = append(parts, key[0])
		}
	}
	applied, elsewhere := false, ""
	for _, p := range parts {
		switch p.Word() {
		case "header":
			applied = setHeader(order, p.Name(), order.Customer) || applied
		case "cookie":
			applied = setHeader(order, "Cookie", p.Name()+"="+url.PathEscape(order.Customer)) || applied
		default:
			elsewhere = p.String()
		}
	}
	if !applied && elsewhere != "" {
		notes = append(notes, fmt.Sprintf("the customer was not written into the request: clients are named by %s, which only the request "+
			"itself can have", elsewhere))
	}
	return notes, nil
}

// setHeader adds a header that the request lacks. It reports whether the request then has the value.
func setHeader(order *admin.ExplainOrder, name, value string) bool {
	for present, values := range order.Headers {
		if strings.EqualFold(present, name) {
			return slices.Contains(values, value)
		}
	}
	if order.Headers == nil {
		order.Headers = admin.ExplainHeaders{}
	}
	order.Headers[name] = []string{value}
	return true
}
