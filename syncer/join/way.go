// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"time"
)

// certificate is a client certificate and the time for which it is valid.
type certificate struct {
	notBefore, notAfter time.Time
}

// renewal returns the time at which the certificate is to be renewed: after the part early of its lifetime.
func (c *certificate) renewal(early float64) time.Time {
	return c.notBefore.Add(time.Duration(float64(c.notAfter.Sub(c.notBefore)) * early))
}

// situation is all that the next step depends on.
type situation struct {
	have    *certificate // in the file; nil: none
	token   []byte       // kubeconfig with a token; nil: none, or it was denied
	pending *pending     // the request that is under way; nil: none
	file    []byte       // content of the file
}

// way is how a Renewer goes on.
type way int

const (
	// rest waits: the certificate need not be renewed yet.
	rest way = iota
	// renew asks for a certificate with the present one.
	renew
	// enter asks for a certificate with the token.
	enter
	// stuck has neither a certificate nor a token that can be used.
	stuck
)

// plan returns how to go on.
func plan(s situation, now time.Time, early float64) way {
	valid := s.have != nil && now.Before(s.have.notAfter)
	switch {
	case valid && now.Before(s.have.renewal(early)):
		return rest
	case valid:
		return renew
	case s.token != nil:
		return enter
	}
	return stuck
}
