// Conveniences only: every page and every form works without this file.
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("scripted");

  function kept(name) {
    try { return localStorage.getItem(name); } catch (refused) { return null; }
  }
  function keep(name, value) {
    try { localStorage.setItem(name, value); } catch (refused) { /* works for this page alone */ }
  }
  // The answer to a form is reloaded, and found again by Back, as its page: nothing is sent twice.
  if (document.body.dataset.page) { history.replaceState(null, "", document.body.dataset.page); }

  function byId(id) { return document.getElementById(id); }

  // Light or dark: the system's choice until the person makes one.
  var theme = kept("theme");
  if (theme === "light" || theme === "dark") { root.dataset.theme = theme; }
  function turnTheme() {
    var dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : window.matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    keep("theme", root.dataset.theme);
  }

  // Times: UTC as the server wrote them, or the zone of this machine.
  var local = kept("clock") === "local";
  function showTimes() {
    var button = byId("clock");
    if (button) { button.textContent = local ? "Local time" : "UTC"; }
    document.querySelectorAll("time[datetime]").forEach(function (each) {
      if (!each.dataset.utc) { each.dataset.utc = each.textContent; }
      var at = new Date(each.dateTime), zone = { timeZoneName: "short" };
      if (each.dataset.age !== undefined) {
        if (!each.dataset.title) { each.dataset.title = each.title; }
        each.title = local ? at.toLocaleString(undefined, zone) : each.dataset.title;
      }
      else if (!local) { each.textContent = each.dataset.utc; }
      else if (each.dataset.clock === undefined) { each.textContent = at.toLocaleString(undefined, zone); }
      else { each.textContent = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", timeZoneName: "short" }); }
    });
  }

  // The list of suggestions completes the last word of the search.
  var search = byId("q"), list = byId("qualifiers"), words = [];
  function suggest() {
    var cut = search.value.lastIndexOf(" ") + 1, before = search.value.slice(0, cut);
    words.forEach(function (pair) { pair[0].value = before + pair[1]; });
  }
  if (search && list) {
    words = Array.from(list.options, function (each) { return [each, each.value]; });
    search.addEventListener("input", suggest);
  }

  // Speech input types letters: a person may switch the keys off. A page without the switch has no keys.
  var keys = kept("keys") !== "off";
  function showKeys() {
    if (byId("keys")) { byId("keys").textContent = keys ? "Keys on" : "Keys off"; }
    document.querySelectorAll("[data-keys]").forEach(function (each) { each.hidden = !keys; });
  }
  function pressed(event) {
    if (!keys || !byId("keys")) { return; }
    if (event.ctrlKey || event.metaKey || event.altKey) { return; }
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { return; }
    if (event.key === "/" && search) { event.preventDefault(); search.focus(); search.select(); }
    if (event.key === "r") { event.preventDefault(); location.reload(); }
    if (event.key === "?" && !byId("help").open) { event.preventDefault(); byId("help").showModal(); }
  }

  // A list must not move while somebody points at it or is choosing something in it.
  function isChanged(field) {
    if (field.type === "checkbox") { return field.checked !== field.defaultChecked; }
    if (field.tagName !== "SELECT") { return field.value !== field.defaultValue; }
    var first = Array.from(field.options).findIndex(function (each) { return each.defaultSelected; });
    return field.selectedIndex !== Math.max(first, 0);
  }
  function whyPaused(element) {
    if (!refreshes) { return "Refresh is off."; }
    if (element.matches(":hover")) { return "Refresh is paused while the pointer is here."; }
    var filled = Array.from(element.querySelectorAll("input:not([type=hidden]), select")).some(isChanged);
    if (filled) { return "Refresh is paused while a form is filled in."; }
    return element.contains(document.activeElement) ? "Refresh is paused while the focus is here." : "";
  }

  // One box selects the whole list below it.
  document.addEventListener("change", function (event) {
    if (event.target.dataset.all === undefined) { return; }
    event.target.closest("table").querySelectorAll("input[name=message]").forEach(function (each) {
      each.checked = event.target.checked;
    });
  });

  // Copies a text; where the browser gives no clipboard, the text is selected.
  document.addEventListener("click", function (event) {
    var from = byId(event.target.dataset.copy || ""), button = event.target;
    if (!from) { return; }
    if (!navigator.clipboard) { getSelection().selectAllChildren(from); return; }
    navigator.clipboard.writeText(from.textContent).then(
      function () { button.textContent = "Copied"; },
      function () { getSelection().selectAllChildren(from); });
  });

  // A person may switch the refresh off, on every page that has one.
  var refreshes = kept("refresh") !== "off";
  function showRefresh() {
    var button = byId("refresh"), hint = byId("paused");
    if (!button) { return; }
    button.hidden = !document.querySelector("#live[hx-get]");
    button.textContent = refreshes ? "Refresh on" : "Refresh off";
    hint.hidden = refreshes || button.hidden;
    hint.textContent = "Refresh is off.";
  }
  document.addEventListener("htmx:beforeRequest", function (event) {
    if (event.detail.elt.id !== "live") { return; }
    var why = whyPaused(event.detail.elt), hint = byId("paused");
    hint.hidden = !why;
    hint.textContent = why;
    if (why || document.hidden) { event.preventDefault(); }
  });
  // A page whose refresh fails shows what was true then: it must say so.
  var fresh = new Date();
  document.addEventListener("htmx:afterRequest", function (event) {
    var hint = byId("stale"), status = event.detail.xhr.status;
    if (event.detail.requestConfig.elt.id !== "live" || !hint) { return; }
    if (event.detail.successful) { fresh = new Date(); }
    hint.hidden = event.detail.successful;
    hint.textContent = "Not refreshed since "
      + (local ? fresh.toLocaleTimeString() : fresh.toISOString().slice(11, 19) + " UTC") + ": "
      + (status ? "the API answers " + status : "the API does not answer")
      + ". What is below may have changed.";
  });
  // A page that was refused stays until there is another answer: a reload would begin anew for a screen reader.
  if (byId("again")) {
    setInterval(function () {
      fetch(location.href).then(
        function (answer) { if (answer.status !== 503) { location.reload(); } },
        function () { /* nothing answers yet */ });
    }, 5000);
  }
  document.addEventListener("htmx:afterSettle", showTimes);
  document.addEventListener("keydown", pressed);
  if (byId("clock")) {
    byId("clock").addEventListener("click", function () {
      local = !local;
      keep("clock", local ? "local" : "utc");
      showTimes();
    });
  }
  if (byId("refresh")) {
    byId("refresh").addEventListener("click", function () {
      refreshes = !refreshes;
      keep("refresh", refreshes ? "on" : "off");
      showRefresh();
    });
  }
  if (byId("theme")) { byId("theme").addEventListener("click", turnTheme); }
  if (byId("keys")) {
    byId("keys").addEventListener("click", function () {
      keys = !keys;
      keep("keys", keys ? "on" : "off");
      showKeys();
    });
    byId("show-help").addEventListener("click", function () { byId("help").showModal(); });
  }
  showKeys();
  showRefresh();
  showTimes();
})();
