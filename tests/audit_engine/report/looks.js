// What can be asked of an opened page; each comes to what is amiss.
globalThis.looks = (() => {
  const shownOnes = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.getClientRects().length);
  const linear = (each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
  const luminance = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((each) => linear(each / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [light, dim] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dim + 0.05);
  };
  const numbers = (color) => (color.match(/[0-9.]+/g) || []).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = numbers(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const told = (each) => `${each.tagName}.${each.getAttribute("class")} ${each.textContent.trim().slice(0, 30)}`;

  return {
    // Boxes that end right of the window, but for those inside a region that scrolls by itself.
    overflowing: () => shownOnes("body *")
      .filter((each) => !each.closest(".scroll, .visually-hidden, .skip, thead"))
      .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
      .map(told)
      .concat(document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : []),

    // Texts that were left so little room that they run down the page, a few letters a line.
    squeezed: () => shownOnes("body *")
      .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
      .filter((each) => !each.closest(".visually-hidden, .skip, thead, svg"))
      .filter((each) => {
        const box = each.getBoundingClientRect();
        const size = parseFloat(getComputedStyle(each).fontSize);
        return box.width < 5 * size && box.height > 5 * size;
      })
      .map(told),

    labels: () => shownOnes("svg.picture text").length,

    // Labels of a picture that lie on each other, or outside of it.
    overlapping: () => shownOnes("svg.picture").flatMap((svg) => {
      const box = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].map((each) => [each.textContent, each.getBoundingClientRect()]);
      const isApart = (one, other) => one.right <= other.left + 1 || other.right <= one.left + 1
        || one.bottom <= other.top + 2 || other.bottom <= one.top + 2;
      const pairs = texts.flatMap(([name, one], at) => texts.slice(at + 1)
        .filter(([, other]) => !isApart(one, other)).map(([other]) => `${name} lies on ${other}`));
      const outside = texts.filter(([, one]) => one.left < box.left - 2 || one.right > box.right + 2)
        .map(([name]) => `${name} is outside`);
      return [...pairs, ...outside];
    }),

    // Texts with less contrast than WCAG AA asks for (1.4.3): 4.5, or 3 where it is large.
    pale: () => {
      const hasText = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
      const texts = shownOnes("body *").filter((each) => hasText(each) && !each.closest("script, title, desc, .skip"));
      const found = texts.flatMap((each) => {
        const style = getComputedStyle(each);
        const front = numbers(each.namespaceURI.endsWith("svg") ? style.fill : style.color);
        const ratio = contrast(front, behind(each));
        const size = parseFloat(style.fontSize);
        const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        return ratio < (isLarge ? 3 : 4.5) ? [`${ratio.toFixed(2)}: ${told(each)}`] : [];
      });
      return { looked: texts.length, found: [...new Set(found)].slice(0, 10) };
    },

    // What stands for something by its colour needs 3 against what it stands on (1.4.11).
    faint: () => {
      const of = (name) => {
        const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
        return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
      };
      const onPaper = ["--bad", "--dark-v", "--wait", "--good-fill", "--good", "--sea", "--focus"];
      const pairs = [...onPaper.map((each) => [each, "--paper"]), ["--held", "--track"], ["--bad", "--sheet"], ["--dark-v", "--sheet"]];
      return pairs.map(([one, other]) => [one, other, contrast(of(one), of(other))])
        .filter(([, , ratio]) => !(ratio >= 3))
        .map(([one, other, ratio]) => `${one} on ${other}: ${ratio.toFixed(2)}`);
    },

    // One heading of the first rank, none left out, ids once, and a name for everything that is operated.
    unsound: () => {
      const found = [];
      const ranks = [...document.querySelectorAll("h1, h2, h3, h4")].map((each) => Number(each.tagName[1]));
      if (ranks.filter((each) => each === 1).length !== 1) found.push("not one h1");
      ranks.forEach((rank, at) => { if (at && rank > ranks[at - 1] + 1) found.push(`h${rank} behind h${ranks[at - 1]}`); });
      const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
      found.push(...ids.filter((each, at) => ids.indexOf(each) !== at).map((each) => `two ids ${each}`));
      const named = [...document.querySelectorAll("[aria-labelledby]")].flatMap((each) => each.getAttribute("aria-labelledby").split(" "));
      found.push(...named.filter((id) => !document.getElementById(id)).map((id) => `no id ${id}`));
      for (const each of document.querySelectorAll("button, a, summary, input")) {
        const label = each.closest("label");
        const name = each.textContent.trim() || each.getAttribute("aria-label") || (label && label.textContent.trim());
        if (!name) found.push(`no name: ${each.outerHTML.slice(0, 60)}`);
      }
      for (const each of document.querySelectorAll("table")) if (!each.caption) found.push("a table without a caption");
      return found;
    },

    // Where the keyboard is.
    focus: () => {
      const each = document.activeElement;
      const style = getComputedStyle(each);
      const box = each.getBoundingClientRect();
      return {
        text: each.textContent.trim().slice(0, 40),
        tag: each.tagName,
        outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
        isSeen: box.bottom > 0 && box.top < innerHeight && box.width > 0,
      };
    },
  };
})();
