// Package httpdecide serves decisions over HTTP: POST /v1/decide for programs, in JSON, and GET
// /v1/decide for the subrequests with which gateways ask about the requests of their clients.
package httpdecide
