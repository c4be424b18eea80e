// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// LongestMessage is how many bytes of a message a condition is to have. API servers refuse a whole status for one message of
// more than 32768 characters.
const LongestMessage = 4096

// Shorten returns a message as it may be written into an object: valid UTF-8, as it would be read again, of at most so many
// bytes. If it is longer it ends, between two characters, with how much of it is missing. To shorten twice changes nothing.
// most is 64 or more.
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
