// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// impersonate sets the user of c to the user in the Impersonate headers, and Impersonator to the user who sent the
// request. It does nothing without such headers.
func (c *call) impersonate() error {
	h := c.http.Header
	target := User{Name: h.Get("Impersonate-User"), UID: h.Get("Impersonate-Uid"), Groups: h.Values("Impersonate-Group")}
	for name, values := range h {
		if key, ok := strings.CutPrefix(name, "Impersonate-Extra-"); ok {
			if target.Extra == nil {
				target.Extra = map[string][]string{}
			}
			if decoded, err := url.PathUnescape(key); err == nil {
				key = decoded
			}
			target.Extra[strings.ToLower(key)] = values
		}
	}
	if target.Name == "" {
		if target.UID != "" || len(target.Groups) > 0 || target.Extra != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("requested %v without impersonating a user", target))
		}
		return nil
	}
	if target.Name != "system:anonymous" {
		target.Groups = append(append([]string{}, target.Groups...), "system:authenticated")
	}
	impersonator := c.User
	c.Impersonator, c.User = &impersonator, target
	return nil
}

// impersonations returns the rights that the impersonator needs: one for the user, and one for each UID, group and
// extra value in the headers, in the order of a real server.
func (c *call) impersonations() []Request {
	if c.Impersonator == nil {
		return nil
	}
	var asks []Request
	need := func(group, resource, subresource, namespace, name string) {
		asks = append(asks, Request{
			Time: c.Time, Method: c.Method, Path: c.Path, User: *c.Impersonator, Verb: "impersonate",
			Group: group, Version: "v1", Resource: resource, Subresource: subresource, Namespace: namespace, Name: name,
		})
	}
	if account, ok := strings.CutPrefix(c.User.Name, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		need("", "serviceaccounts", "", namespace, name)
	} else {
		need("", "users", "", "", c.User.Name)
	}
	if c.User.UID != "" {
		need(authenticationv1.GroupName, "uids", "", "", c.User.UID)
	}
	for _, group := range c.http.Header.Values(authenticationv1.ImpersonateGroupHeader) {
		need("", "groups", "", "", group)
	}
	for _, key := range slices.Sorted(maps.Keys(c.User.Extra)) {
		for _, value := range c.User.Extra[key] {
			need(authenticationv1.GroupName, "userextras", key, "", value)
		}
	}
	return asks
}
