// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

// systemPrefix begins the names that Kubernetes reserves.
const systemPrefix = "system:"

func (a *Authentication) check(f *faults) {
	const at = "authentication"
	tokens := a.TokenFile != nil || len(a.JWT) > 0 || a.TokenReview != nil
	if a.ClientCertificates == nil && !tokens && a.PassThrough == nil {
		f.add(at, "has no way to authenticate a caller", "at least one of clientCertificates, tokenFile, jwt, tokenReview and passThrough")
	}
	if a.PassThrough != nil && tokens {
		f.add(at+".passThrough", "is set beside another way for tokens", "only one of the two: a token that was refused here must not reach the regions")
	}
	if a.ClientCertificates != nil && a.ClientCertificates.CAFile == "" {
		f.add(at+".clientCertificates.caFile", "is missing", "the path of the authorities' certificates in PEM")
	}
	if a.TokenFile != nil && a.TokenFile.File == "" {
		f.add(at+".tokenFile.file", "is missing", `the path of a file with lines of token,name,uid,"group,group"`)
	}
	a.TokenReview.check(f)
	a.checkJWT(f)
	a.checkMappings(f)
	for i, key := range a.ExtraKeys {
		if key == "" || strings.ToLower(key) != key {
			f.add(fmt.Sprintf(at+".extraKeys[%d]", i), fmt.Sprintf("is %q", key), "the key of an extra value, in lower case")
		}
	}
}

func (r *TokenReview) check(f *faults) {
	if r == nil {
		return
	}
	const at = "authentication.tokenReview"
	if r.KubeconfigFile != "" && r.Peer != "" {
		f.add(at, "kubeconfigFile and peer are both set", "at most one")
	}
	if r.Peer != "" {
		f.peer(at+".peer", r.Peer)
	}
	if len(r.Audiences) == 0 {
		f.add(at+".audiences", "is missing", "the audiences of tokens for this gateway, such as [https://gateway.example.com]; without them, any token for any service would be accepted")
	}
	for i, audience := range r.Audiences {
		if audience == "" {
			f.add(fmt.Sprintf("%s.audiences[%d]", at, i), "is empty", "an audience")
		}
	}
	f.between(at+".cacheTTL", r.CacheTTL, 0, 10*time.Second)
	f.between(at+".timeout", r.Timeout, 100*time.Millisecond, time.Minute)
}

// checkJWT checks the issuers as kube-apiserver does.
func (a *Authentication) checkJWT(f *faults) {
	if len(a.JWT) == 0 {
		return
	}
	issuers, err := a.Issuers()
	if err != nil {
		f.add("authentication.jwt", err.Error(), "the form of jwt in kube-apiserver's AuthenticationConfiguration of apiserver.config.k8s.io/v1")
		return
	}
	compiler := authenticationcel.NewDefaultCompiler()
	all := &apiserver.AuthenticationConfiguration{JWT: issuers}
	for _, fault := range validation.ValidateAuthenticationConfiguration(compiler, all, nil) {
		f.add("authentication."+fault.Field, strings.Join(strings.Fields(fault.ErrorBody()), " "), "the form of kube-apiserver's AuthenticationConfiguration")
	}
}

// Issuers returns JWT in the form that k8s.io/apiserver uses.
func (a *Authentication) Issuers() ([]apiserver.JWTAuthenticator, error) {
	issuers := make([]apiserver.JWTAuthenticator, len(a.JWT))
	for i := range a.JWT {
		if err := apiserverv1.Convert_v1_JWTAuthenticator_To_apiserver_JWTAuthenticator(&a.JWT[i], &issuers[i], nil); err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
	}
	return issuers, nil
}

func (a *Authentication) checkMappings(f *faults) {
	seen := map[Mapping]bool{}
	for i, m := range a.Mappings {
		at := fmt.Sprintf("authentication.mappings[%d]", i)
		if (m.User == "") == (m.Group == "") {
			f.add(at, "user and group are both set, or both missing", "exactly one")
		}
		if m.As == "" {
			f.add(at+".as", "is missing", "the name in the regions")
		}
		if m.As == systemMasters {
			f.add(at+".as", "is "+systemMasters+", whose members may do everything in every region, without a role that could be taken away", "another group, bound to the role cluster-admin where that is meant")
		}
		name := Mapping{User: m.User, Group: m.Group}
		if seen[name] {
			f.add(at, "is a second mapping of the same name", "one mapping per user and group")
		}
		seen[name] = true
	}
}

const systemMasters = systemPrefix + "masters"
