// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// LongestMessage is the maximum size in bytes of a message in a condition. An API server rejects a
// whole status if one message has more than 32768 characters.
const LongestMessage = 4096

// Shorten returns a message for an object: valid UTF-8 of at most most bytes, which an API server
// stores unchanged. A longer message is cut between two characters, and ends with the number of
// missing bytes. Shorten is idempotent. most must be at least 64.
func Shorten(message string, most int) string {
	message = strings.ToValidUTF8(message, string(utf8.RuneError))
	if len(message) <= most {
		return message
	}
	const left = "... (%d more bytes)"
	end := most - len(fmt.Sprintf(left, len(message)))
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + fmt.Sprintf(left, len(message)-end)
}

// few is the maximum number of names in a message. Hundreds of names would make the object too large.
const few = 10

// Brief joins texts about clusters. Of more than ten it joins only the first ten, and adds the number of the rest.
func Brief(all []string, separator string) string {
	if len(all) > few {
		return strings.Join(all[:few], separator) + fmt.Sprintf(" and %d more", len(all)-few)
	}
	return strings.Join(all, separator)
}
