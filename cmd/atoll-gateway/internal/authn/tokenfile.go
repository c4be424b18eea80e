// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/internal/reload"
)

// tokenFile authenticates by the tokens in a file.
func (a *Authenticator) tokenFile(path string) (authenticator.Token, error) {
	var present atomic.Pointer[tokenfile.TokenAuthenticator]
	files, err := reload.New("tokens", func(contents ...[]byte) error {
		users, err := parseTokens(contents[0])
		if err == nil {
			present.Store(tokenfile.New(users))
		}
		return err
	}, path)
	if err != nil {
		return nil, err
	}
	a.running = append(a.running, files.Start)
	return authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		return present.Load().AuthenticateToken(ctx, token)
	}), nil
}

// parseTokens parses lines of token,name,uid,"group,group". Its errors do not quote the lines. k8s.io/apiserver only reads
// files by their path, and accepts a file without users.
func parseTokens(data []byte) (map[string]*user.DefaultInfo, error) {
	lines := csv.NewReader(bytes.NewReader(data))
	lines.FieldsPerRecord = -1
	users := map[string]*user.DefaultInfo{}
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := lines.FieldPos(0)
		if len(fields) < 3 || fields[0] == "" || fields[1] == "" {
			return nil, fmt.Errorf(`line %d: want token,name,uid or token,name,uid,"group,group"`, line)
		}
		if users[fields[0]] != nil {
			return nil, fmt.Errorf("line %d: the token is that of a line above", line)
		}
		u := &user.DefaultInfo{Name: fields[1], UID: fields[2]}
		if len(fields) > 3 && fields[3] != "" {
			u.Groups = strings.Split(fields[3], ",")
		}
		users[fields[0]] = u
	}
	if len(users) == 0 {
		return nil, errors.New("the file has no line")
	}
	return users, nil
}
