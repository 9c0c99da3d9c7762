// Package ctl asks running instances, and etcd, for headgate ctl, and writes the answers as
// tables for people or as JSON for programs.
//
// An Instance is asked by its admin listener, and Limits are read and set in etcd. Errors
// name the flags of headgate ctl. What instances and pacers say of themselves is escaped
// before a terminal sees it.
package ctl
