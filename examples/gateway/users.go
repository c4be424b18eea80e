// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/router"
)

// users holds the known users, by token.
type users struct {
	byToken map[string]router.User
	madeUp  []string // sample tokens, which may be printed
}

// usersOf reads the file, or returns sample users if the peers are samples too.
func usersOf(o options) (users, error) {
	if o.users == "" {
		if o.peers != "" {
			return users{}, errors.New("-peers needs -users: without it everybody would be refused")
		}
		return users{madeUp: []string{"alice", "bob"}, byToken: map[string]router.User{
			"alice": {Name: "alice", Groups: []string{"dev"}}, "bob": {Name: "bob", Groups: []string{"ops"}},
		}}, nil
	}
	f, err := os.Open(o.users)
	if err != nil {
		return users{}, err
	}
	defer func() { _ = f.Close() }()
	return parseUsers(f)
}

// parseUsers parses lines of token,name,uid,"group,group".
func parseUsers(r io.Reader) (users, error) {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = -1
	all := users{byToken: map[string]router.User{}}
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return users{}, fmt.Errorf("users: %w", err)
		}
		line, _ := lines.FieldPos(0)
		if len(fields) < 3 || fields[0] == "" || fields[1] == "" {
			return users{}, fmt.Errorf(`users: line %d: want token,name,uid or token,name,uid,"group,group"`, line)
		}
		if _, ok := all.byToken[fields[0]]; ok {
			return users{}, fmt.Errorf("users: line %d: the token is that of a line above", line)
		}
		u := router.User{Name: fields[1], UID: fields[2]}
		if len(fields) > 3 && fields[3] != "" {
			u.Groups = strings.Split(fields[3], ",")
		}
		all.byToken[fields[0]] = u
	}
}

// authenticate is the gateway's proxy.Authenticator.
func (u users) authenticate(r *http.Request) (router.Identity, error) {
	user, ok := u.of(r)
	if !ok {
		return router.Identity{}, errors.New("the token is not known")
	}
	return router.Impersonate(user), nil
}

func (u users) inGroup(r *http.Request, group string) bool {
	user, ok := u.of(r)
	return ok && slices.Contains(user.Groups, group)
}

func (u users) of(r *http.Request) (router.User, bool) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return router.User{}, false
	}
	user, ok := u.byToken[token]
	return user, ok
}
