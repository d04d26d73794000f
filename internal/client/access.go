package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Me is who the daemon takes the caller for.
type Me struct {
	User struct {
		ID     string   `json:"id"`
		Name   string   `json:"name"`
		Role   string   `json:"role"`
		Groups []string `json:"groups"`
	} `json:"user"`
	Via         string   `json:"via"`
	Build       string   `json:"build"`
	Version     string   `json:"version"`
	Permissions []string `json:"permissions"`
}

// Me asks who the caller is.
func (c *Client) Me(ctx context.Context) (m Me, err error) {
	_, err = c.call(ctx, request{method: http.MethodGet, path: []string{"me"}}, &m)
	return m, err
}

// Status gives the daemon's own account of itself, as it came.
func (c *Client) Status(ctx context.Context) (raw json.RawMessage, err error) {
	_, err = c.call(ctx, request{method: http.MethodGet, path: []string{"status"}}, &raw)
	return raw, err
}

// Token is a token without its secret.
type Token struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	UserID     string     `json:"user_id"`
	UserName   string     `json:"user_name"`
	Role       string     `json:"role"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  time.Time  `json:"expires_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
}

// NewToken is a request for a token; zero values leave the choice to the daemon.
type NewToken struct {
	Name   string `json:"name,omitempty"`
	User   string `json:"user,omitempty"`
	Role   string `json:"role,omitempty"`
	TTLSec int64  `json:"ttl_s,omitempty"`
}

// CreateToken makes a token; the secret is told this once.
func (c *Client) CreateToken(ctx context.Context, n NewToken) (Token, string, error) {
	var res struct {
		Token  Token  `json:"token"`
		Secret string `json:"secret"`
	}
	_, err := c.call(ctx, request{method: http.MethodPost, path: []string{"tokens"}, body: n}, &res)
	return res.Token, res.Secret, err
}

// Tokens lists the tokens that the caller may see.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	return list[Token](ctx, c, []string{"tokens"}, nil)
}

// RevokeToken ends a token by its id or name, and the connections made with it.
func (c *Client) RevokeToken(ctx context.Context, ref string) error {
	_, err := c.call(ctx, request{method: http.MethodDelete, path: []string{"tokens", ref}}, nil)
	return err
}

// User is somebody who may use the daemon.
type User struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	UID         *int      `json:"uid"`
	Role        string    `json:"role"`
	Disabled    bool      `json:"disabled"`
	HasPassword bool      `json:"has_password"`
	CreatedAt   time.Time `json:"created_at"`
}

// NewUser is a request for a user.
type NewUser struct {
	Name     string `json:"name"`
	UID      *int   `json:"uid,omitempty"`
	Role     string `json:"role,omitempty"`
	Password string `json:"password,omitempty"`
}

// UserChange is what to change of a user; nil leaves a thing as it is.
type UserChange struct {
	Disabled *bool   `json:"disabled,omitempty"`
	Role     *string `json:"role,omitempty"`
	Password *string `json:"password,omitempty"`
}

// Users lists all users.
func (c *Client) Users(ctx context.Context) ([]User, error) {
	return list[User](ctx, c, []string{"users"}, nil)
}

// AddUser makes a user.
func (c *Client) AddUser(ctx context.Context, n NewUser) (u User, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: []string{"users"}, body: n}, &u)
	return u, err
}

// ChangeUser changes a user.
func (c *Client) ChangeUser(ctx context.Context, name string, ch UserChange) (u User, err error) {
	_, err = c.call(ctx, request{method: http.MethodPatch, path: []string{"users", name}, body: ch}, &u)
	return u, err
}

// Group is a named set of users.
type Group struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Members   []string  `json:"members"`
	CreatedAt time.Time `json:"created_at"`
}

// Groups lists all groups.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	return list[Group](ctx, c, []string{"groups"}, nil)
}

// AddGroup makes a group.
func (c *Client) AddGroup(ctx context.Context, name string) (g Group, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: []string{"groups"}, body: map[string]string{"name": name}}, &g)
	return g, err
}

// RemoveGroup removes a group; its members stay users.
func (c *Client) RemoveGroup(ctx context.Context, name string) error {
	_, err := c.call(ctx, request{method: http.MethodDelete, path: []string{"groups", name}}, nil)
	return err
}

// AddMember puts a user into a group.
func (c *Client) AddMember(ctx context.Context, group, user string) error {
	_, err := c.call(ctx, request{method: http.MethodPut, path: []string{"groups", group, "members", user}}, nil)
	return err
}

// RemoveMember takes a user out of a group.
func (c *Client) RemoveMember(ctx context.Context, group, user string) error {
	_, err := c.call(ctx, request{method: http.MethodDelete, path: []string{"groups", group, "members", user}}, nil)
	return err
}

// Link is a single-use address that logs a browser in.
type Link struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// LoginLink makes a link for a user; "" is the caller.
func (c *Client) LoginLink(ctx context.Context, user string) (l Link, err error) {
	body := map[string]string{}
	if user != "" {
		body["user"] = user
	}
	_, err = c.call(ctx, request{method: http.MethodPost, path: []string{"login-links"}, body: body}, &l)
	return l, err
}

// SetOwnPassword sets the caller's password; "" removes it.
func (c *Client) SetOwnPassword(ctx context.Context, password string) error {
	_, err := c.call(ctx, request{method: http.MethodPut, path: []string{"me", "password"}, body: map[string]string{"password": password}}, nil)
	return err
}
