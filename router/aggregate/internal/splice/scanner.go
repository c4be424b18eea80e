// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	errSyntax    = errors.New("it is no valid JSON")
	errDeep      = errors.New("it is nested too deeply")
	errStructure = errors.New("it does not have the structure of an answer of an API server")
	errTwice     = errors.New("a key occurs twice")
)

// maxDepth is the limit of encoding/json.
const maxDepth = 10000

// span is a part of the text.
type span struct{ from, to int }

func (s span) known() bool { return s.to > 0 }
func (s span) size() int   { return s.to - s.from }

// scanner reads JSON from left to right. After an error, all its methods do nothing.
type scanner struct {
	text    []byte
	at      int
	seed    uint64
	depth   int
	err     error
	scratch []byte // of a text with escapes
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.at = len(s.text)
}

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\n', '\t', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// end fails unless only white space is left.
func (s *scanner) end() {
	if s.err == nil && s.peek() != 0 || s.at < len(s.text) {
		s.fail(errSyntax)
	}
}

// object reads an object. It calls value for each key, which must read the value and return its fingerprint. The key is
// valid until the next read.
func (s *scanner) object(value func(key []byte) uint64) uint64 {
	if s.peek() != '{' {
		s.fail(errStructure)
		return 0
	}
	s.enter()
	sum, n := uint64(0), 0
	for more := s.peek() != '}'; more && s.err == nil; n++ {
		key, print := s.string()
		if s.peek() != ':' {
			s.fail(errSyntax)
			break
		}
		s.at++
		sum += pair(print, value(key))
		more = s.more('}')
	}
	s.leave()
	return object(sum, n)
}

// array reads an array. It calls value for each element, which must read it and return its fingerprint.
func (s *scanner) array(value func() uint64) uint64 {
	if s.peek() != '[' {
		s.fail(errStructure)
		return 0
	}
	s.enter()
	sum, n := uint64(0), 0
	for more := s.peek() != ']'; more && s.err == nil; n++ {
		sum = element(sum, value())
		more = s.more(']')
	}
	s.leave()
	return array(sum, n)
}

func (s *scanner) enter() {
	s.at++
	if s.depth++; s.depth > maxDepth {
		s.fail(errDeep)
	}
}

// leave skips the closing bracket.
func (s *scanner) leave() {
	s.at = min(s.at+1, len(s.text))
	s.depth--
}

// more reports whether another element follows, and skips the comma before it.
func (s *scanner) more(closing byte) bool {
	switch s.peek() {
	case ',':
		s.at++
		return true
	case closing:
		return false
	}
	s.fail(errSyntax)
	return false
}

// skip reads a value and returns its fingerprint.
func (s *scanner) skip() uint64 {
	switch c := s.peek(); c {
	case '{':
		return s.skipObject()
	case '[':
		return s.array(s.skip)
	case '"':
		_, print := s.string()
		return print
	case 't':
		return s.word("true", hashTrue)
	case 'f':
		return s.word("false", hashFalse)
	case 'n':
		return s.word("null", hashNull)
	default:
		return s.number()
	}
}

// skipObject is object without a func for each key: most of a text is read here. If a key occurs twice, encoding/json
// takes the last value; no API server writes such an object, and its fingerprint may be any.
func (s *scanner) skipObject() uint64 {
	s.enter()
	sum, n := uint64(0), 0
	for more := s.peek() != '}'; more && s.err == nil; n++ {
		_, print := s.string()
		if s.peek() != ':' {
			s.fail(errSyntax)
			break
		}
		s.at++
		sum += pair(print, s.skip())
		more = s.more('}')
	}
	s.leave()
	return object(sum, n)
}

func (s *scanner) word(word string, print uint64) uint64 {
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		s.fail(errSyntax)
		return 0
	}
	s.at += len(word)
	return print
}

// number reads a number as client-go decodes it: an integer if it fits into an int64, otherwise a float.
func (s *scanner) number() uint64 {
	from := s.at
	digits := func() bool {
		begin := s.at
		for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
			s.at++
		}
		return s.at > begin
	}
	at := func(c byte) bool {
		if s.at < len(s.text) && s.text[s.at] == c {
			s.at++
			return true
		}
		return false
	}
	at('-')
	ok, whole := at('0') || digits(), true
	if ok && at('.') {
		ok, whole = digits(), false
	}
	if ok && (at('e') || at('E')) {
		if !at('+') {
			at('-')
		}
		ok, whole = digits(), false
	}
	if !ok {
		s.fail(errSyntax)
		return 0
	}
	text := string(s.text[from:s.at])
	if whole {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			return integer(v)
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.fail(errSyntax) // it is too large, which encoding/json refuses too
		return 0
	}
	return float(v)
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special returns a word in which the highest bit of a byte is set if w has a quote, a backslash, a control character
// or a byte above 127 there. Bytes above the first such byte may be set too.
func special(w uint64) uint64 {
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (w - ones*' ') | w) & highs
}

// string reads a string and returns its content and fingerprint. The content is valid until the next read.
func (s *scanner) string() ([]byte, uint64) {
	if s.peek() != '"' {
		s.fail(errSyntax)
		return nil, 0
	}
	s.at++
	from, h := s.at, s.seed
	for s.at+8 <= len(s.text) {
		w := binary.LittleEndian.Uint64(s.text[s.at:])
		found := special(w)
		if found == 0 {
			h = fold(h, w)
			s.at += 8
			continue
		}
		bit := bits.TrailingZeros64(found) - 7 // of the first special byte
		if byte(w>>bit) != '"' {
			return s.unusual(from)
		}
		s.at += bit / 8
		content := s.text[from:s.at]
		s.at++
		return content, fold(fold(h, w&(1<<bit-1)), uint64(len(content)))
	}
	return s.unusual(from)
}

// unusual reads the rest of a string that begins at from, byte by byte.
func (s *scanner) unusual(from int) ([]byte, uint64) {
	plain := true
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			content := s.text[from:s.at]
			s.at++
			if !utf8.Valid(content) {
				s.fail(errSyntax)
				return nil, 0
			}
			if !plain {
				content = s.unescape(content)
			}
			return content, hashText(s.seed, content)
		case c == '\\':
			plain = false
			s.at += 2
		case c < ' ':
			s.fail(errSyntax)
		default:
			s.at++
		}
	}
	s.fail(errSyntax)
	return nil, 0
}

// unescape returns the content without escapes.
func (s *scanner) unescape(content []byte) []byte {
	out := s.scratch[:0]
	for i := 0; i < len(content); i++ {
		c := content[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		switch c = content[i]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex(content[i+1:])
			if !ok {
				s.fail(errSyntax)
				return nil
			}
			i += 4
			if utf16.IsSurrogate(r) {
				second, ok := rune(0), false
				if rest := content[i+1:]; len(rest) > 1 && rest[0] == '\\' && rest[1] == 'u' {
					second, ok = hex(rest[2:])
				}
				if both := utf16.DecodeRune(r, second); ok && both != utf8.RuneError {
					r, i = both, i+6
				} else {
					r = utf8.RuneError
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			s.fail(errSyntax)
			return nil
		}
	}
	s.scratch = out
	return out
}

// hex returns the number of the first four hexadecimal digits.
func hex(text []byte) (r rune, ok bool) {
	if len(text) < 4 {
		return 0, false
	}
	for _, c := range text[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
