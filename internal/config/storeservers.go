package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// servers reads a list of host[:port], separated by commas, from begin to end.
func (t *storeText) servers(begin, end int) *addressFault {
	if begin == end {
		return t.fault(begin, "has no host")
	}
	for text := range strings.SplitSeq(t.text[begin:end], ",") {
		server, problem := t.server(text)
		switch {
		case problem != "":
			return t.fault(begin, problem)
		case slices.Contains(t.store.Addresses, server):
			return &addressFault{begin, "names " + quote(server) + " twice", "remove one of them"}
		case len(t.store.Addresses) == maxServers:
			return &addressFault{begin, fmt.Sprintf("names more than %d servers", maxServers), fmt.Sprintf("use at most %d", maxServers)}
		}
		t.store.Addresses = append(t.store.Addresses, server)
		begin += len(text) + 1
	}
	if t.form.names == oneServer && len(t.store.Addresses) > 1 {
		scheme := t.form.scheme
		return &addressFault{
			begin - 1, "names several servers, and " + scheme + " is one",
			"use " + scheme + "+cluster or " + scheme + "+sentinel, or keep one server",
		}
	}
	return nil
}

// server reads one host[:port], and returns it in lower case with its port.
func (t *storeText) server(text string) (server, problem string) {
	host, port, ported := strings.ToLower(text), "", false
	switch i := strings.LastIndexByte(host, ':'); {
	case strings.Contains(host, " "):
		return "", "has a space between its servers"
	case strings.HasPrefix(host, "["):
		inner, rest, closed := strings.Cut(host[1:], "]")
		if !closed || rest != "" && rest[0] != ':' {
			return "", "has a [ that is not closed, or text after its ]"
		}
		host, port, ported = inner, strings.TrimPrefix(rest, ":"), rest != ""
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", "has no IPv6 address in its brackets"
		}
		host = "[" + host + "]"
	case strings.Count(host, ":") > 1:
		return "", "has an IPv6 address without brackets, or two ports"
	case i >= 0:
		host, port, ported = host[:i], host[i+1:], true
	}
	if host == "" {
		return "", "has an empty host"
	}
	if _, err := netip.ParseAddr(host); err != nil && host[0] != '[' && !isHostName(host) {
		return "", "has an invalid host"
	}
	if !ported {
		port = strconv.Itoa(int(t.form.port))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port != strconv.FormatUint(n, 10) {
		return "", "has a port that is not in 1 to 65535"
	}
	return host + ":" + port, ""
}

// path reads the rest of the address after the servers: a database, or a master and a database.
func (t *storeText) path(begin int) *addressFault {
	if i := strings.IndexAny(t.text[begin:], "?#"); i >= 0 {
		return &addressFault{
			begin + i, "has a " + t.text[begin+i:begin+i+1] + " after its servers, which has no meaning here",
			"remove it: settings are separate fields, like store_timeout and store_tls",
		}
	}
	text := strings.TrimPrefix(t.text[begin:], "/")
	if t.form.kind == KindRedisSentinel {
		master, rest, _ := strings.Cut(text, "/")
		if bad := t.master(begin, master); bad != nil {
			return bad
		}
		begin, text = begin+1+len(master), rest
	}
	switch {
	case text == "":
		return nil
	case t.form.kind == KindRedisCluster:
		return &addressFault{begin, "has a database, but a cluster has only database 0", "remove the slash and the text after it"}
	case t.form.kind == KindMemcached:
		return &addressFault{begin, "has a path, which Memcached does not support", "remove the slash and the text after it"}
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > mostDatabase || text != strconv.FormatUint(n, 10) {
		problem := fmt.Sprintf("has a database that is not in 0 to %d", mostDatabase)
		return &addressFault{begin + 1, problem, "write it like " + example(t.form)}
	}
	t.store.Database = int(n)
	return nil
}

// master reads the sentinels' name of a master.
func (t *storeText) master(begin int, name string) *addressFault {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	switch {
	case name == "":
		return t.fault(begin, "has no name of the master")
	case strings.Trim(name, letters) != "" || len(name) > maxMaster:
		return t.fault(begin+1, "has an invalid name of the master")
	}
	t.store.Master = name
	return nil
}
