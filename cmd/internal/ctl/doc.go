// Package ctl implements headgate ctl. It queries running instances and etcd, and prints the
// answers as tables or as JSON.
//
// An Instance is queried on its admin listener. Limits are read and set in etcd. Error
// messages name the flags of headgate ctl. Texts that instances and pacers have written are
// escaped before they reach a terminal.
package ctl
