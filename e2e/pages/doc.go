// Package pages tests the web pages, the HTML reports and the browser speed test in a real browser.
package pages
