// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/atoll-dev/atoll/region"
)

// commands builds the command lines of remedies: the user can paste them, because they name the
// peers as the user's own command line did.
type commands struct{ program, peers, log string }

func (s *session) commands() commands {
	c := commands{program: s.program}
	add := func(to *string, flag string, values ...string) {
		for _, value := range values {
			if value != "" {
				*to += " " + flag + " " + quoted(value)
			}
		}
	}
	add(&c.peers, "--config", s.config)
	add(&c.peers, "--kubeconfig", s.kubeconfigs...)
	add(&c.peers, "--context", s.contexts...)
	add(&c.log, "--wal", s.wal)
	add(&c.log, "--log", s.shared)
	return c
}

// reading returns the line of a command that needs no log.
func (c commands) reading(words ...string) string {
	return c.program + " " + strings.Join(words, " ") + c.peers
}

// changing returns the line of a command that writes a log.
func (c commands) changing(words ...string) string { return c.reading(words...) + c.log }

// rbac returns the line that applies the least rights to a peer.
func (c commands) rbac() string { return c.program + " rbac | kubectl apply -f -" }

// unknown is the finding of a check whose request failed with err. The least rights allow the request.
func (c commands) unknown(check string, err error) finding {
	f := unknown(check, err)
	if region.CauseOf(err) == region.CauseForbidden {
		f.remedy = c.rbac()
	}
	return f
}

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	special := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("_@%+=:,./-", r)
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
